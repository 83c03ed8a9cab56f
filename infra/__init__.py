"""CloudFormation, policies and deployment; imports nothing of this project."""
