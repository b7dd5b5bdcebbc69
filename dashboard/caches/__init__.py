"""What pages keep of what they have read, shared by all sessions: a file per page."""
