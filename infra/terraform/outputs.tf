output "warehouse" {
  value = local.warehouse
}

output "application_id" {
  value = local.application
}

output "role_arns" {
  description = "Of reader, consumer, producer and admin."
  value       = { for name, role in aws_iam_role.people : name => role.arn }
}

output "job_role_arns" {
  description = "Of pipeline, maintenance and verification, and of catalog where the topics are registered in Glue."
  value       = { for name, role in aws_iam_role.job : name => role.arn }
}
