/** For `node --import`: at exit, writes the resource usage of the process as JSON to the file BENCH_USAGE. */
import { writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
    const usage = { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMegabytes: (maxRSS * 1024) / 1e6 }
    writeFileSync(process.env.BENCH_USAGE, JSON.stringify(usage))
  })
}
