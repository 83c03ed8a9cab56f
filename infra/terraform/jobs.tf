# The application that runs the jobs, and when it does.

locals {
  artifacts = "s3://${var.bucket_name}/artifacts"
  # Python is EMR's own, for whose version infra.package makes the archive, which is unpacked as ./environment.
  spark_settings = join(" ", [for setting in [
    "spark.archives=${local.artifacts}/txntable-environment.tar.gz#environment",
    "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON=/usr/bin/python3.11",
    "spark.emr-serverless.driverEnv.PYSPARK_PYTHON=/usr/bin/python3.11",
    "spark.emr-serverless.driverEnv.PYTHONPATH=./environment",
    "spark.executorEnv.PYSPARK_PYTHON=/usr/bin/python3.11",
    "spark.executorEnv.PYTHONPATH=./environment",
    "spark.jars=/usr/share/aws/delta/lib/delta-spark.jar,/usr/share/aws/delta/lib/delta-storage.jar",
    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
  ] : "--conf ${setting}"])

  s3_logs = { S3MonitoringConfiguration = { LogUri = "s3://${var.bucket_name}/logs/" } }
  cloudwatch_logs = {
    for name in ["coordinator", "verification"] : name => {
      CloudWatchLoggingConfiguration = {
        Enabled             = true
        LogGroupName        = aws_cloudwatch_log_group.jobs.name
        LogStreamNamePrefix = name
        LogTypes            = { SPARK_DRIVER = ["STDOUT", "STDERR"] }
      }
    }
  }

  schedules = merge(
    {
      coordinator = {
        description = "Ends transactions that timed out, completes what was decided, expires and cleans up"
        every       = var.coordinator_every
        role        = "maintenance"
        minutes     = 60
        program     = "jobs/coordinator.py"
        arguments   = ["--once", "--metrics", "cloudwatch"]
        settings    = ""
        logging     = merge(local.s3_logs, local.cloudwatch_logs.coordinator)
      }
      compaction = {
        description = "Merges small segments, compacts by key, applies retention"
        every       = var.compaction_every
        role        = "maintenance"
        minutes     = 360
        program     = "jobs/compact.py"
        arguments   = ["--once"]
        settings    = ""
        logging     = local.s3_logs
      }
      vacuum = {
        description = "Deletes files that nothing needs any more"
        every       = var.vacuum_every
        role        = "maintenance"
        minutes     = 360
        program     = "jobs/vacuum.py"
        arguments   = ["--execute"]
        settings    = ""
        logging     = local.s3_logs
      }
      verification = {
        description = "Reads everything, and says what is damaged"
        every       = var.verification_every
        role        = "verification"
        minutes     = 1440
        program     = "jobs/verify.py"
        arguments   = ["--metrics", "cloudwatch"]
        settings    = ""
        logging     = merge(local.s3_logs, local.cloudwatch_logs.verification)
      }
    },
    var.pipeline_config == "" ? {} : {
      pipeline = {
        description = "One transaction of the pipeline: what is new is read, transformed and committed"
        every       = var.pipeline_every
        role        = "pipeline"
        minutes     = 180
        program     = "jobs/pipeline.py"
        arguments   = ["--config", "pipeline.toml", "--once"]
        settings    = " --conf spark.files=${var.pipeline_config}"
        logging     = local.s3_logs
      }
    },
    local.has_catalog ? {
      catalog = {
        description = "Registers new topics in Glue, and takes out deleted ones"
        every       = var.catalog_every
        role        = "catalog"
        minutes     = 60
        program     = "jobs/catalog.py"
        arguments   = ["--glue", "--database", var.glue_database, "--prefix=${var.table_prefix}"]
        settings    = ""
        logging     = local.s3_logs
      }
    } : {},
  )

  # The client token is the same for every attempt at one run, so a retry of the scheduler starts nothing twice.
  inputs = {
    for name, job in local.schedules : name => jsonencode({
      ClientToken             = "<aws.scheduler.execution-id>"
      Name                    = name
      ApplicationId           = local.application
      ExecutionRoleArn        = aws_iam_role.job[job.role].arn
      ExecutionTimeoutMinutes = job.minutes
      JobDriver = {
        SparkSubmit = {
          EntryPoint            = "${local.artifacts}/${job.program}"
          EntryPointArguments   = concat(["--warehouse", local.warehouse], job.arguments)
          SparkSubmitParameters = "${local.spark_settings}${job.settings}"
        }
      }
      ConfigurationOverrides = { MonitoringConfiguration = job.logging }
    })
  }
}

resource "aws_emrserverless_application" "jobs" {
  count         = var.application_id == "" ? 1 : 0
  name          = var.name
  type          = "spark"
  release_label = var.release_label

  auto_start_configuration {
    enabled = true
  }
  auto_stop_configuration {
    enabled              = true
    idle_timeout_minutes = 15
  }
  # What a run that grows without bounds may cost.
  maximum_capacity {
    cpu    = "${var.maximum_vcpu} vCPU"
    memory = "${var.maximum_memory_gb} GB"
    disk   = "${var.maximum_disk_gb} GB"
  }
}

# What coordinator and verification print: metrics in CloudWatch's embedded format, which become the metrics of txntable.
resource "aws_cloudwatch_log_group" "jobs" {
  name              = "/txntable/${var.name}"
  retention_in_days = 30
}

resource "aws_scheduler_schedule" "job" {
  for_each            = local.schedules
  name_prefix         = "${var.name}-${each.key}-"
  description         = each.value.description
  schedule_expression = each.value.every
  # No job may come between the parts of a backup or a restore.
  state = var.writes == "checked" ? "ENABLED" : "DISABLED"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "arn:${local.partition}:scheduler:::aws-sdk:emrserverless:startJobRun"
    role_arn = aws_iam_role.scheduler.arn
    # The scheduler fills in <...> where it stands as such; jsonencode writes its brackets in another way.
    input = replace(replace(local.inputs[each.key], "\\u003c", "<"), "\\u003e", ">")

    retry_policy {
      maximum_retry_attempts       = 3
      maximum_event_age_in_seconds = 3600
    }
  }
}
