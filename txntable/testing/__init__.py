"""Stores with faults, a clock by hand and a local S3 service, for tests only."""
