"""The stages of attention, each a few statements: from the sources to Q, K and V, to scores, weights and outputs.

A stage reads the fields of the definition that concern it and adds nothing where they are at their default.
"""
