"""`unskew explore`: look at rows in a browser, tag what you see, measure the tag. The server listens on this machine alone."""
