# Who may do what: policies of policies.py, roles that have them, and the roles of jobs and of their scheduler.

locals {
  of_this_account = { StringEquals = { "aws:SourceAccount" = local.account } }
  # Whoever in the account is allowed to may assume these.
  people = toset(["reader", "consumer", "producer", "admin"])
  jobs = merge(
    { pipeline = ["consumer", "producer"], maintenance = ["maintenance"], verification = ["reader"] },
    local.has_catalog ? { catalog = ["reader", "catalog"] } : {},
  )
  attachments = merge([
    for job, policies in local.jobs : { for policy in policies : "${job}-${policy}" => { job = job, policy = policy } }
  ]...)

  artifacts_and_logs = [
    { Effect = "Allow", Action = ["s3:GetObject"], Resource = ["${local.bucket_arn}/artifacts/*"] },
    { Effect = "Allow", Action = ["s3:PutObject"], Resource = ["${local.bucket_arn}/logs/*"] },
  ]
  # EMR looks for the group before it writes the job's output to it.
  metrics = [
    { Effect = "Allow", Action = ["logs:DescribeLogGroups"], Resource = ["*"] },
    {
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
      Resource = ["${local.log_group_arn}:*"]
    },
  ]
  own = {
    pipeline     = local.artifacts_and_logs
    maintenance  = concat(local.artifacts_and_logs, local.metrics)
    verification = concat(local.artifacts_and_logs, local.metrics)
    catalog      = local.artifacts_and_logs
  }
  log_group_arn = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/txntable/${var.name}"
}

resource "aws_iam_policy" "role" {
  for_each    = toset([for name in keys(local.policies) : name if name != "bucket"])
  name_prefix = "${var.name}-${each.key}-"
  description = each.key == "catalog" ? "registers the topics of a txntable warehouse in glue" : "${each.key} of a txntable warehouse"
  policy      = local.documents[each.key]
}

resource "aws_iam_role" "people" {
  for_each    = local.people
  name_prefix = "${var.name}-${each.key}-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "arn:${local.partition}:iam::${local.account}:root" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

resource "aws_iam_role_policy_attachment" "people" {
  for_each   = local.people
  role       = aws_iam_role.people[each.key].name
  policy_arn = aws_iam_policy.role[each.key].arn
}

# Their conditions: nobody else's job or schedule may borrow the role.
resource "aws_iam_role" "job" {
  for_each    = local.jobs
  name_prefix = "${var.name}-${each.key}-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "emr-serverless.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
      Condition = local.of_this_account
    }]
  })
}

resource "aws_iam_role_policy_attachment" "job" {
  for_each   = local.attachments
  role       = aws_iam_role.job[each.value.job].name
  policy_arn = aws_iam_policy.role[each.value.policy].arn
}

resource "aws_iam_role_policy" "job" {
  for_each = local.jobs
  name     = "artifacts-and-logs"
  role     = aws_iam_role.job[each.key].id
  policy   = jsonencode({ Version = "2012-10-17", Statement = local.own[each.key] })
}

resource "aws_iam_role" "scheduler" {
  name_prefix = "${var.name}-scheduler-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
      Condition = local.of_this_account
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  name = "start-jobs"
  role = aws_iam_role.scheduler.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["emr-serverless:StartJobRun"]
        Resource = ["arn:${local.partition}:emr-serverless:${local.region}:${local.account}:/applications/${local.application}"]
      },
      {
        Effect    = "Allow"
        Action    = ["iam:PassRole"]
        Resource  = [for job in ["pipeline", "maintenance", "verification", "catalog"] : aws_iam_role.job[job].arn if contains(keys(local.jobs), job)]
        Condition = { StringEquals = { "iam:PassedToService" = "emr-serverless.amazonaws.com" } }
      },
    ]
  })
}
