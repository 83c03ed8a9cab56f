#!/bin/sh
# Succeeds if Spark will find a Java that it can run on, else says how to get one and fails.
# It looks where Spark looks: JAVA_HOME if that is set, otherwise the PATH.
set -eu

needed=17

if [ -n "${JAVA_HOME:-}" ]; then
    java=$JAVA_HOME/bin/java
else
    java=$(command -v java || true)
fi

found=none
if [ -n "$java" ] && [ -x "$java" ]; then
    # macOS has a java on its PATH that only says that there is none: its exit status tells.
    if answer=$("$java" -version 2>&1 </dev/null); then
        found=$(printf '%s\n' "$answer" | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1)
    fi
fi

# 1.8.0_392 is Java 8, 17.0.15 is 17, 25-ea is 25.
major=$(printf '%s\n' "$found" | sed -e 's/^1\.//' -e 's/[^0-9].*//')
if [ -n "$major" ] && [ "$major" -ge "$needed" ]; then
    exit 0
fi

cat >&2 <<EOF
error: spark needs java $needed or later found=${found:-unknown} java=${java:-none} JAVA_HOME=${JAVA_HOME:-unset}
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless    (Debian 13: openjdk-21-jre-headless)
  macOS:           brew install openjdk@17 && export JAVA_HOME="\$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home"
  conda:           conda install -c conda-forge openjdk=17
Another one that is installed already: set JAVA_HOME to the folder that holds its bin/java.
EOF
exit 1
