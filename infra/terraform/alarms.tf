# What is watched: alarms and a dashboard on the metrics that coordinator and verification export.

locals {
  alarms = merge(
    {
      late = {
        description = "Work that nobody does (txntable check says which), or the coordinator job does not run"
        metric      = "late"
        seconds     = 3600
        periods     = 2
        threshold   = 0
        missing     = "breaching"
      }
      unreadable = {
        description = "A log cannot be read: txntable check, then txntable warehouse verify"
        metric      = "unreadable"
        seconds     = 3600
        periods     = 1
        threshold   = 0
        missing     = "notBreaching"
      }
      damage = {
        description = "Stored data is damaged: the log of the verification says what, with its remedy"
        metric      = "damages"
        seconds     = 3600
        periods     = 1
        threshold   = 0
        # Until a verification finds nothing.
        missing = "ignore"
      }
      verification = {
        description = "For a week no verification has found everything well: see its runs and their log"
        metric      = "damages"
        seconds     = 86400
        periods     = 7
        threshold   = 0
        missing     = "breaching"
      }
      job-failure = {
        description = "Rounds of the coordinator job fail again and again: see its log"
        metric      = "coordinator_failures"
        seconds     = 3600
        periods     = 3
        threshold   = 0
        missing     = "notBreaching"
      }
      open-transaction = {
        description = "A transaction holds readers back for long: txntable status"
        metric      = "oldest_open_transaction_ms"
        seconds     = 3600
        periods     = 1
        threshold   = var.open_transaction_ms
        missing     = "notBreaching"
      }
      publication = {
        description = "Public tables are behind their topics: txntable transactions run --once"
        metric      = "publication_lag_ms_max"
        seconds     = 3600
        periods     = 2
        threshold   = 900000
        missing     = "notBreaching"
      }
    },
    var.group_lag == 0 ? {} : {
      group-lag = {
        description = "A consumer group is far behind: txntable groups describe"
        metric      = "group_lag_max"
        seconds     = 3600
        periods     = 2
        threshold   = var.group_lag
        missing     = "notBreaching"
      }
    },
  )

  # Where it stands, what it is called, what it shows.
  widgets = [
    {
      x       = 0
      y       = 0
      title   = "Late, unreadable, damaged"
      metrics = ["late", "unreadable", "damages", "coordinator_failures"]
    },
    { x = 12, y = 0, title = "Lags, ms", metrics = ["publication_lag_ms_max", "oldest_open_transaction_ms"] },
    { x = 0, y = 6, title = "Lags, offsets", metrics = ["last_stable_offset_lag_max", "group_lag_max"] },
    {
      x       = 12
      y       = 6
      title   = "Transactions"
      metrics = ["open_transactions", "coordinator_aborted", "coordinator_completed"]
    },
    {
      x     = 0
      y     = 12
      title = "What the coordinator job expired and cleaned up"
      metrics = [
        "coordinator_expired_transactional_ids", "coordinator_expired_offsets", "coordinator_cleaned_log_files"
      ]
    },
  ]
}

resource "aws_cloudwatch_metric_alarm" "warehouse" {
  for_each            = local.alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = "txntable"
  metric_name         = each.value.metric
  dimensions          = { warehouse = local.warehouse }
  statistic           = "Maximum"
  period              = each.value.seconds
  evaluation_periods  = each.value.periods
  threshold           = each.value.threshold
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = each.value.missing
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

resource "aws_cloudwatch_dashboard" "warehouse" {
  dashboard_name = "txntable-${var.name}"
  dashboard_body = jsonencode({
    widgets = [for widget in local.widgets : {
      type   = "metric"
      x      = widget.x
      y      = widget.y
      width  = 12
      height = 6
      properties = {
        title   = widget.title
        region  = local.region
        stat    = "Maximum"
        period  = 900
        metrics = [for metric in widget.metrics : ["txntable", metric, "warehouse", local.warehouse]]
      }
    }]
  })
}
