import { readPipeline } from '../../config/index.ts'
import { packageFile } from '../../package/index.ts'
import { startSandbox } from '../../sandbox/index.ts'
import { command } from '../command.ts'
import { exportPipeline } from '../export-pipeline.ts'
import { announceStop } from '../signals.ts'

const DEMO_PIPELINE = packageFile('pipelines/demo.yaml')

/** `npm run demo`: the demo pipeline against a sandbox in the same process. No token, no network. */
export const demo = command({
  options: (yargs) =>
    yargs.options({ 'no-progress': { type: 'boolean', default: false, describe: 'No progress line' } }),
  async run({ noProgress }, io) {
    const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
    // The months of the demo pipeline, about 12,500 credentials for each domain and month.
    const sandbox = await startSandbox({
      records: 75_000,
      from: '2024-01-01',
      until: '2024-07-01',
      requestsPerSecond: 0,
    })
    try {
      const env = {
        ...io.env,
        SPILLWAY_BASE_URL: sandbox.baseUrl,
        SPILLWAY_TOKEN: sandbox.token,
        // Slow enough to be watched.
        SPILLWAY_REQUESTS_PER_SECOND: '10',
      }
      const pipeline = await readPipeline(DEMO_PIPELINE, { env, cwd: io.cwd })
      io.screen.write(
        `Exporting ${pipeline.extract.queries.length} made-up domains from a sandbox in this process.\n`,
      )
      const settings = {
        // A demo that has nothing to do shows nothing.
        fresh: true,
        redo: [],
        allowPlaintext: false,
        failFast: false,
        json: false,
        again: `${io.program} demo`,
        noProgress,
      }
      return await exportPipeline(pipeline, settings, signals, { ...io, env })
    } finally {
      await sandbox.close()
      signals.release()
    }
  },
})
