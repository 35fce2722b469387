"""Programs that show the library at work on something real."""
