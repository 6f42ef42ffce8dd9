"""The page of the measured tables, from the records alone."""
def written(records, setting, command, done, of):
    return ""
