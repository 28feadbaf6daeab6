"""Real servers for tests, on free loopback ports: started here, and gone when the test process is gone."""
