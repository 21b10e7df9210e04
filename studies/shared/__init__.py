"""Code that several studies use."""
