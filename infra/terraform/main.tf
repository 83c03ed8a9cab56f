# A warehouse: the resources of ../warehouse.yaml, for Terraform and OpenTofu.
#
# Invariants: permissions are those of ../policies.py, whose documents stand in policies/ (python -m
# txntable.infra.terraform_policies writes them, a test compares); what differs from CloudFormation is in the README.

data "aws_partition" "current" {}
data "aws_region" "current" {}
data "aws_caller_identity" "current" {}

locals {
  partition  = data.aws_partition.current.partition
  region     = data.aws_region.current.id
  account    = data.aws_caller_identity.current.account_id
  bucket_arn = "arn:${local.partition}:s3:::${var.bucket_name}"
  warehouse  = "s3://${var.bucket_name}/${var.prefix}"

  has_key     = var.kms_key_arn != ""
  application = var.application_id != "" ? var.application_id : aws_emrserverless_application.jobs[0].id

  place = {
    partition = local.partition
    bucket    = var.bucket_name
    prefix    = var.prefix
    kms_key   = var.kms_key_arn
  }
  # Statements that this warehouse does without.
  unneeded = concat(
    local.has_key ? [] : ["UseKey"],
    var.writes == "checked" ? [] : ["DenyReplacingLogEntries"],
    var.writes == "none" ? [] : ["DenyWrites"],
  )
  policies = {
    for name in ["reader", "consumer", "producer", "maintenance", "admin", "bucket"] :
    name => jsondecode(templatefile("${path.module}/policies/${name}.json", local.place))
  }
  documents = {
    for name, policy in local.policies : name => jsonencode({
      Version   = policy.Version
      Statement = [for statement in policy.Statement : statement if !contains(local.unneeded, statement.Sid)]
    })
  }
}

resource "aws_s3_bucket" "warehouse" {
  bucket = var.bucket_name

  lifecycle {
    # It outlives what else is here.
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "warehouse" {
  bucket = aws_s3_bucket.warehouse.id

  rule {
    bucket_key_enabled = local.has_key
    apply_server_side_encryption_by_default {
      sse_algorithm     = local.has_key ? "aws:kms" : "AES256"
      kms_master_key_id = local.has_key ? var.kms_key_arn : null
    }
  }
}

resource "aws_s3_bucket_ownership_controls" "warehouse" {
  bucket = aws_s3_bucket.warehouse.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "warehouse" {
  bucket                  = aws_s3_bucket.warehouse.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "warehouse" {
  bucket = aws_s3_bucket.warehouse.id

  versioning_configuration {
    status = "Enabled"
  }
}

# None of its rules touches what is current in the warehouse.
resource "aws_s3_bucket_lifecycle_configuration" "warehouse" {
  bucket     = aws_s3_bucket.warehouse.id
  depends_on = [aws_s3_bucket_versioning.warehouse]

  rule {
    id     = "multipart-leftovers"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  rule {
    id     = "old-versions"
    status = "Enabled"
    filter {}
    noncurrent_version_expiration {
      noncurrent_days = var.version_days
    }
    expiration {
      expired_object_delete_marker = true
    }
  }

  rule {
    id     = "logs"
    status = "Enabled"
    filter {
      prefix = "logs/"
    }
    expiration {
      days = 30
    }
  }
}

resource "aws_s3_bucket_policy" "warehouse" {
  bucket     = aws_s3_bucket.warehouse.id
  policy     = local.documents.bucket
  depends_on = [aws_s3_bucket_public_access_block.warehouse]
}
