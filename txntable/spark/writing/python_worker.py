"""The Python processes that Spark runs our code in, and keeps for the next task.

Owns what is done in such a process so that the next task costs less.  Never to be called in a process that is the
user's.
"""

from __future__ import annotations

import gc
import sys
import zipimport

_frozen: list[bool] = []
# Spark puts both before everything else on the path of its workers, as archives, and all jars of the session too.
_OF_SPARK = ("pyspark", "py4j")
_JAR = ".jar"


def settle_worker() -> None:
    """Spare this process what Spark does before and after each task, whatever the task is; called by every task.

    It collects garbage after a task: with our libraries loaded that costs more than a tiny task does, and what is
    loaded is never garbage.  So the first call takes it out of the collector's sight.

    Before a task, Spark 4.1 makes Python read every archive of modules again, once for each package that was found in
    it: all jars of the session, and twelve times the 1,300 names of Spark's own archive, over 70 ms of CPU.  So Python
    forgets where it has looked for modules, as far as that never changes, until something is imported again.  (Spark
    4.2 makes it read them only where the path has changed.)
    """
    if not _frozen:
        _frozen.append(True)
        gc.collect()
        gc.freeze()
    archives = {
        module.__loader__.archive
        for module in map(sys.modules.get, _OF_SPARK)
        if module is not None and isinstance(module.__loader__, zipimport.zipimporter)
    }
    for path, finder in list(sys.path_importer_cache.items()):
        # The user's own archives may be replaced: those are read again, as Spark wants it.
        if isinstance(finder, zipimport.zipimporter) and (finder.archive in archives or finder.archive.endswith(_JAR)):
            # Another thread may be importing.
            sys.path_importer_cache.pop(path, None)
