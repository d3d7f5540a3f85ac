/**
 * `npm run bench:log-packages -- --packages DIR`: CPU time that a package for the log, or for redrawn lines, adds to
 * the start of a command, compared with our own code. Each contender is bundled like the command, loads, and writes one
 * line. The baseline is a bundle without either. Figures are medians of the differences by round.
 *
 *   --packages DIR   where `npm install --prefix DIR pino pino-pretty log-update` has installed the packages
 *   --rounds N       rounds (15)
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'rolldown'
import { measure, median } from './measure.mjs'

const { values: options } = parseArgs({
  options: { packages: { type: 'string', default: '' }, rounds: { type: 'string', default: '15' } },
})
if (options.packages === '')
  throw new Error('--packages DIR is required: where pino, pino-pretty and log-update are installed')

const SOURCES = join(import.meta.dirname, '../src')
const LINE = `{ partition: 'domain.acme.com/all', page: 3 }, 'trying again'`

// Every contender includes code that every command loads.
const ALWAYS = `import { unlessSecret } from '${SOURCES}/core/index.ts'\nunlessSecret('a line', 'long')\n`
const CONTENDERS = {
  'neither log nor redrawn lines': '',
  'our log and our redrawn lines': `
    import { openLog } from '${SOURCES}/cli/log/log.ts'
    import { Screen } from '${SOURCES}/cli/terminal/screen.ts'
    const screen = new Screen(process.stderr, {})
    const settings = { format: 'pretty', level: 'info' }
    openLog({ screen, env: {}, file: null, run: 'bench' }, settings)('info', 'trying again', { page: 3 })
    screen.show('1 of 2 partitions')`,
  'pino, JSON': `
    import pino from 'pino'
    pino(pino.destination({ fd: 2, sync: true })).info(${LINE})`,
  'pino and pino-pretty': `
    import pino from 'pino'
    import pretty from 'pino-pretty'
    pino(pretty({ destination: 2, sync: true })).info(${LINE})`,
  'log-update': `
    import { createLogUpdate } from 'log-update'
    createLogUpdate(process.stderr)('1 of 2 partitions')`,
}

const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
try {
  symlinkSync(join(options.packages, 'node_modules'), join(folder, 'node_modules'))
  const scripts = new Map()
  for (const [number, [name, text]] of Object.entries(CONTENDERS).entries()) {
    const input = join(folder, `in-${number}.mjs`)
    const file = join(folder, `out-${number}.mjs`)
    writeFileSync(input, ALWAYS + text)
    await build({ input, platform: 'node', logLevel: 'silent', output: { file, format: 'esm' } })
    scripts.set(name, file)
  }
  const rounds = []
  for (let round = 0; round < Number(options.rounds); round++) {
    const times = {}
    for (const [name, file] of scripts) times[name] = (await measure(file, [])).cpuSeconds
    rounds.push(times)
  }
  const [baseline] = scripts.keys()
  console.log(`| Node ${process.version}, ${rounds.length} rounds | additional CPU ms |\n|---|---|`)
  for (const name of scripts.keys()) {
    if (name === baseline) continue
    const added = median(rounds.map((times) => times[name] - times[baseline]))
    console.log(`| ${name} | ${(added * 1000).toFixed(0)} |`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
