# The parameters of ../warehouse.yaml under the same names, in Terraform's spelling, with the same defaults.

variable "name" {
  description = "Names the log group, the dashboard and the application; in CloudFormation the name of the stack."
  type        = string
  default     = "txntable"
}

variable "bucket_name" {
  type = string
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "This is no name of a bucket."
  }
}

variable "prefix" {
  description = "Where in the bucket the warehouse is; artifacts/ and logs/ lie beside it."
  type        = string
  default     = "warehouse"
  validation {
    # Not in a folder of which the module itself expires or replaces objects.
    condition = (
      can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.prefix)) &&
      !contains(["logs", "artifacts"], split("/", var.prefix)[0])
    )
    error_message = "A prefix has folders of a-z A-Z 0-9 . _ - and is not below logs/ or artifacts/."
  }
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts the bucket, its policy letting IAM decide; empty: S3's keys."
  type        = string
  default     = ""
}

variable "writes" {
  description = "none: nobody writes, for a backup; any: log entries can be copied, for a restore."
  type        = string
  default     = "checked"
  validation {
    condition     = contains(["checked", "any", "none"], var.writes)
    error_message = "Writes are checked, any or none."
  }
}

variable "version_days" {
  description = "For how many days a deleted or replaced object can be brought back."
  type        = number
  default     = 14
  validation {
    condition     = var.version_days >= 1
    error_message = "At least 1 day."
  }
}

variable "application_id" {
  description = "An EMR Serverless application for Spark that runs the jobs; empty: one is made."
  type        = string
  default     = ""
}

variable "release_label" {
  description = "Of EMR Serverless."
  type        = string
  default     = "emr-spark-8.2.0"
}

variable "pipeline_config" {
  description = "s3:// URL of the pipeline's TOML; empty: no pipeline is scheduled."
  type        = string
  default     = ""
  validation {
    # The job looks for a file of that name, and its role reads no other folder.
    condition     = can(regex("^(|s3://[a-z0-9.-]+/artifacts/(.+/)?pipeline\\.toml)$", var.pipeline_config))
    error_message = "The settings of the pipeline are s3://bucket/artifacts/.../pipeline.toml."
  }
}

variable "coordinator_every" {
  description = "A schedule expression."
  type        = string
  default     = "rate(15 minutes)"
}

variable "compaction_every" {
  description = "A schedule expression."
  type        = string
  default     = "rate(1 hour)"
}

variable "vacuum_every" {
  description = "A schedule expression."
  type        = string
  default     = "rate(1 day)"
}

variable "verification_every" {
  description = "A schedule expression."
  type        = string
  # CloudWatch looks back for seven days at most: no such time is without a verification.
  default = "rate(6 days)"
}

variable "pipeline_every" {
  description = "A schedule expression."
  type        = string
  default     = "rate(10 minutes)"
}

variable "catalog_every" {
  description = "A schedule expression."
  type        = string
  default     = "rate(15 minutes)"
}

variable "glue_database" {
  description = "The database of Glue in which the topics are tables; it must be there. Empty: in none."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^[a-z0-9_]*$", var.glue_database))
    error_message = "A name of Glue has a-z, 0-9 and _."
  }
}

variable "table_prefix" {
  description = "Of the tables' names in it."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^[a-z0-9_]*$", var.table_prefix))
    error_message = "A name of Glue has a-z, 0-9 and _."
  }
}

variable "maximum_vcpu" {
  description = "Of all runs at a time; more of them wait."
  type        = number
  default     = 64
  validation {
    condition     = var.maximum_vcpu >= 4
    error_message = "At least 4."
  }
}

variable "maximum_memory_gb" {
  description = "The same."
  type        = number
  default     = 512
  validation {
    condition     = var.maximum_memory_gb >= 16
    error_message = "At least 16."
  }
}

variable "maximum_disk_gb" {
  description = "The same."
  type        = number
  default     = 2000
  validation {
    condition     = var.maximum_disk_gb >= 20
    error_message = "At least 20."
  }
}

variable "alarm_topic_arn" {
  description = "ARN of the SNS topic that alarms go to; empty: none."
  type        = string
  default     = ""
}

variable "open_transaction_ms" {
  description = "For how long a transaction may hold readers back before an alarm, in ms."
  type        = number
  default     = 3600000
  validation {
    condition     = var.open_transaction_ms >= 1
    error_message = "At least 1 ms."
  }
}

variable "group_lag" {
  description = "Alarm above this lag of a group; 0: no alarm."
  type        = number
  default     = 0
  validation {
    condition     = var.group_lag >= 0
    error_message = "A lag is not negative."
  }
}
