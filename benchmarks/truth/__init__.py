"""What the exact values cost beside other ways to compute them: rivals, rows of the table, the page."""
