// Runs the demo, one end-to-end file and one fault file on other versions of Node.js than the installed one:
// `npm run smoke -- 22 24`. It installs these versions with npm.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const FILES = [
  // Every format, engine and compression, also zstd if Node.js supports it.
  'test/e2e/every-format-holds-the-same-rows.test.ts',
  // kill -9 and resume, in every layout.
  'test/fault/survives-a-kill-at-every-disk-call.test.ts',
]

const versions = process.argv.slice(2)
if (versions.length === 0) {
  console.error('Usage: npm run smoke -- VERSION…   (major versions of Node.js, for example 22 24)')
  process.exit(2)
}
const tested = []
for (const version of versions) {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-node-'))
  try {
    tested.push(smoke(installNode(version, folder)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
console.log(`Smoke tests passed on Node ${tested.join(' and ')}`)

/** Installs the newest Node.js of a major version for this platform. @returns its path */
function installNode(version, folder) {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const npm = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--prefer-offline']
  execFileSync('npm', [...npm, `${name}@${version}`], { stdio: ['ignore', 'ignore', 'inherit'] })
  return join(folder, 'node_modules', name, 'bin', 'node')
}

function smoke(node) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)
  console.log(`Smoke tests on Node ${version}`)
  // Programs that are started by name use this version as well.
  const PATH = `${join(node, '..')}${delimiter}${process.env.PATH}`
  const env = { ...process.env, PATH }
  const run = (...args) => execFileSync(node, args, { cwd: ROOT, env, stdio: 'inherit' })
  run('dist/cli/main.js', 'demo', '--no-progress')
  run('node_modules/vitest/vitest.mjs', 'run', ...FILES)
  return version
}
