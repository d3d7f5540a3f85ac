import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The built command. */
export const CLI = join(import.meta.dirname, '../dist/cli/main.js')
const USAGE = join(import.meta.dirname, 'usage.mjs')

/**
 * Runs a script as a process, by Node or, if its name ends in `.py`, by Python.
 * @param exitCode the expected exit code; any other is an error
 * @returns wall seconds, CPU seconds, peak memory in MB, and MB of the data files in `output`
 */
export async function measure(script, args, env = {}, exitCode = 0) {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
  const usageFile = join(folder, 'usage')
  const output = join(folder, 'out')
  try {
    const started = performance.now()
    const variables = { ...env, BENCH_USAGE: usageFile, BENCH_OUTPUT: output }
    const isPython = script.endsWith('.py')
    const command = isPython ? (process.env.PYTHON ?? 'python3') : process.execPath
    await run(command, [...(isPython ? [] : ['--import', USAGE]), script, ...args], variables, exitCode)
    const wallSeconds = (performance.now() - started) / 1000
    const usage = JSON.parse(readFileSync(usageFile, 'utf8'))
    return { wallSeconds, ...usage, megabytes: dataBytes(output) / 1e6 }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Starts the page server.
 * @param coding content coding of its responses
 * @returns its base URL, its process, and a function that stops it
 */
export async function pageServer(shape, pages, coding = 'identity') {
  const args = [join(import.meta.dirname, 'server.mjs'), shape, String(pages), coding]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(Number(line)))
    child.once('exit', (code) => reject(new Error(`page server exited with ${code}`)))
  })
  return { url: `http://127.0.0.1:${port}/firework`, pid: child.pid, stop: () => child.kill() }
}

/**
 * Writes a pipeline that exports some domains of a page server to the folder BENCH_OUTPUT.
 * @returns its file, and the environment variables that it needs
 */
export function writePipeline(folder, baseUrl, partitions, settings) {
  const {
    format = 'parquet',
    compression = null,
    secret = 'redact',
    encodings = null,
    partitionBy = null,
    tables = null,
    engine = null,
  } = settings
  const name = [format, engine, compression, secret, encodings, tables, new URL(baseUrl).port].join('-')
  const file = join(folder, `${name}.yaml`)
  const domains = Array.from({ length: partitions }, (_, n) => `d${n}.example.com`)
  const options = [
    compression === null ? '' : `, compression: ${compression}`,
    partitionBy === null ? '' : `, partition_by: ${partitionBy}`,
    engine === null ? '' : `, engine: ${engine}`,
    tables === null ? '' : `, table_formats: [${tables}]`,
    encodings === null ? '' : `, parquet: { encodings: ${encodings} }`,
  ]
  writeFileSync(
    file,
    `name: bench
service: { base_url: "${baseUrl}", requests_per_second: 10000 }
extract: { domains: [${domains}], concurrency: 4, max_requests: none }
transform: { secret: ${secret} }
load: { path: "\${BENCH_OUTPUT}", format: ${format}${options.join('')} }
`,
  )
  const key = 'a key for the benchmark, 32 bytes and more'
  return { file, env: { SPILLWAY_TOKEN: 'bench', SPILLWAY_MASK_KEY: key } }
}

function run(command, args, env, exitCode) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === exitCode) resolve()
      else reject(new Error(`${args.join(' ')} exited with ${code}:\n${output.slice(-2000)}`))
    })
  })
}

function dataBytes(folder) {
  let bytes = 0
  if (!existsSync(folder)) return bytes
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !path.slice(folder.length).includes('/_')) bytes += statSync(path).size
  }
  return bytes
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}
