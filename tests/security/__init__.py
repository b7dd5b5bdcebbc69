"""What is held against whoever means harm: each test is named in docs/security.md."""
