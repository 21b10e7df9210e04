"""Tables, fair timing, and data of known shape."""
