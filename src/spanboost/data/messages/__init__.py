"""Messages from and to Kafka topics, Redis streams and tables of databases."""
