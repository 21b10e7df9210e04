"""What commands share: the console, options, and the files they read."""
