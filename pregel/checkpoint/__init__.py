"""Where runs are stored: one protocol, rows of bytes in transactions, and three backends."""
