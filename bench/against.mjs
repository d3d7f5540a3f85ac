import { execFileSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { CLI, measure, median, writePipeline } from './measure.mjs'

const ROOT = join(import.meta.dirname, '..')

/**
 * Builds another commit in a clone. If its package-lock.json equals the one of the working copy, the build uses the
 * installed packages; otherwise npm installs its packages.
 * @returns the path of its command, and its commit
 */
export function buildCommit(name, folder) {
  const commit = git('rev-parse', '--verify', `${name}^{commit}`)
  const clone = join(folder, 'against')
  // A clone, not a worktree: it leaves nothing in the repository, even if this process is killed.
  execFileSync('git', ['clone', '--quiet', '--shared', '--no-checkout', ROOT, clone])
  execFileSync('git', ['-C', clone, 'checkout', '--quiet', '--detach', commit])
  const isSame = git('diff', '--name-only', commit, '--', 'package-lock.json') === ''
  if (isSame) symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
  else npm(clone, 'ci', '--no-audit', '--no-fund')
  npm(clone, 'run', 'build')
  const cli = join(clone, 'dist/cli/main.js')
  if (!existsSync(cli)) throw new Error(`${name} builds no dist/cli/main.js`)
  return { cli, commit: commit.slice(0, 10) }
}

function git(...args) {
  return execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim()
}

function npm(cwd, ...args) {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Cases that cover the path of a row. Each is measured with both builds in direct succession. */
const CASES = [
  ['small pages', 'small'],
  ['parquet', {}],
  ['parquet, hmac', { secret: 'hmac' }],
  ['csv', { format: 'csv' }],
]

/** Measures both builds in rounds. The other build goes first in every second round, so that the order cancels out. */
export async function compareBuilds(other, { folder, url, partitions, small, rounds, only }) {
  const cases = CASES.filter(([name]) => only.split(',').some((text) => name.includes(text)))
  const pairs = new Map(cases.map(([name]) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const [name, settings] of cases) {
      process.stderr.write(`round ${round}: ${name}\n`)
      const isSmall = settings === 'small'
      const { file, env } = isSmall
        ? writePipeline(folder, await small.url(), small.partitions, {})
        : writePipeline(folder, await url(), partitions, settings)
      const order = round % 2 === 0 ? [other, CLI] : [CLI, other]
      const figures = new Map()
      for (const cli of order) figures.set(cli, await measure(cli, ['run', file], env))
      pairs.get(name).push({ here: figures.get(CLI), there: figures.get(other) })
    }
  }
  return pairs
}

export const RATIO_HEAD = '| | speed | CPU time | peak memory |\n|---|---|---|---|'

/** Ratios of this build to the other, by pair: median (min–max). Higher is better for speed, lower for the others. */
export function ratioRow(name, pairs) {
  const spread = (ratioOf) => {
    const ratios = pairs.map(ratioOf)
    const [min, max] = [Math.min(...ratios), Math.max(...ratios)]
    return `${median(ratios).toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`
  }
  const cells = [
    name,
    spread(({ here, there }) => there.wallSeconds / here.wallSeconds),
    spread(({ here, there }) => here.cpuSeconds / there.cpuSeconds),
    spread(({ here, there }) => here.peakMegabytes / there.peakMegabytes),
  ]
  return `| ${cells.join(' | ')} |`
}
