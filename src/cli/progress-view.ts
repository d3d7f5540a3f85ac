import type { Progress, RunObserver } from '../run/index.ts'
import type { Io } from './io.ts'
import { progressLine } from './progress-line.ts'
import { styleFor, wantsColour } from './style.ts'

// Ten times a second looks continuous, and costs next to nothing.
const REDRAW_MS = 100
const LOG_MS = 30_000

export type ProgressView = RunObserver & { close(): void }

/**
 * Shows how far a run is: as a line that is redrawn in place, or, where nothing can be redrawn, as a log line
 * every half minute.
 * @param quiet the user wants no redrawn line
 */
export function progressView(name: string, io: Io, quiet: boolean): ProgressView {
  const redraws = io.screen.canRedraw && io.logging.format === 'pretty' && !quiet
  return redraws ? redrawnLine(name, io) : logLines(io)
}

function redrawnLine(name: string, { screen, env, log }: Io): ProgressView {
  const style = styleFor(wantsColour(screen.stream, env))
  const startedMs = performance.now()
  let latest: Progress | null = null
  let doneBefore = 0
  let changed = false
  let ticks = 0
  const timer = setInterval(() => {
    // The stopwatch runs on, also when nothing else happens.
    if (latest === null || (!changed && ++ticks % 10 !== 0)) return
    changed = false
    screen.show(
      progressLine(
        {
          name,
          progress: latest,
          doneBefore,
          elapsedMs: performance.now() - startedMs,
          nowMs: Date.now(),
          columns: screen.columns,
        },
        style,
      ),
    )
  }, REDRAW_MS)
  timer.unref()
  return {
    log,
    progress(progress) {
      if (latest === null) doneBefore = progress.partitionsDone
      latest = progress
      changed = true
    },
    close() {
      clearInterval(timer)
      screen.clear()
    },
  }
}

function logLines({ log }: Io): ProgressView {
  let latest: Progress | null = null
  const timer = setInterval(() => {
    if (latest === null) return
    log('info', 'progress', {
      partitions_total: latest.partitionsTotal,
      partitions_done: latest.partitionsDone,
      partitions_failed: latest.partitionsFailed,
      rows: latest.rows,
      requests: latest.requests,
      retries: latest.retries,
      quarantined: latest.quarantined,
      searches_remaining: latest.searchesRemaining,
    })
  }, LOG_MS)
  timer.unref()
  return {
    log,
    progress(progress) {
      latest = progress
    },
    close: () => clearInterval(timer),
  }
}
