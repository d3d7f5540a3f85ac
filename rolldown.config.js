import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor'
import { defineConfig } from 'rolldown'

// What the encoders' sources come to, for the footers of Parquet files.
const encoderBuild = {
  name: 'encoder-build',
  async buildStart() {
    const { encoderDigest } = await import('./build/parts/encoder-build.js')
    this.emitFile({ type: 'asset', fileName: 'encoder-build.txt', source: encoderDigest() })
  },
}

// Who passes on somebody's code passes on its licence: the texts of all packages of which the bundle holds a part.
const notices = {
  name: 'notices',
  generateBundle(_options, bundle) {
    const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
    const folders = modules.map((id) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)?.[0])
    const packages = [...new Set(folders.filter((folder) => folder !== undefined))]
    // Some lie there twice.
    const texts = [...new Set(packages.map(noticeOf))].sort()
    const source = `${NOTICES_HEAD}\n${texts.join('\n')}`
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-NOTICES.txt', source })
  },
}

const NOTICES_HEAD =
  'The files in this folder and below hold code of the packages below, each under the licence that follows its name.\n'

/** What a package has its users pass on. @throws Error when it has no such file */
function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const more = join(folder, 'licenses')
  const files = [
    ...readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying|copyright)/i.test(file)),
    ...(existsSync(more) ? readdirSync(more).map((file) => join('licenses', file)) : []),
  ].filter((file) => file !== 'licenses')
  if (files.length === 0) throw new Error(`${name} is in the bundle and has no file with its licence`)
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return [`${'='.repeat(80)}\n${name} ${version} (${license})`, ...texts, ''].join('\n\n')
}

// V8 keeps a source with a single character beyond Latin-1 in two bytes a character, for as long as the thread lives.
const ascii = {
  name: 'ascii',
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === 'chunk') file.code = file.code.replace(NOT_ASCII, escaped)
    }
  },
}

const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Each UTF-16 unit by itself. */
const NOT_ASCII = /[^\0-\x7f]/g

// npm makes the command of an installed package executable. `npm link` leads to the built file itself.
const executable = {
  name: 'executable',
  writeBundle: ({ dir }) => chmodSync(join(dir, 'cli/main.js'), 0o755),
}

// What `tsc` says of each file becomes one file, with the types alone that the library's exports lead to.
const declarations = {
  name: 'declarations',
  writeBundle({ dir }) {
    const projectFolder = import.meta.dirname
    const config = ExtractorConfig.prepare({
      configObject: {
        projectFolder,
        mainEntryPointFilePath: '<projectFolder>/build/types/index.d.ts',
        compiler: { tsconfigFilePath: '<projectFolder>/tsconfig.json' },
        dtsRollup: { enabled: true, untrimmedFilePath: join(projectFolder, dir, 'index.d.ts') },
      },
      configObjectFullPath: undefined,
      packageJsonFullPath: join(projectFolder, 'package.json'),
    })
    const { succeeded } = Extractor.invoke(config, { localBuild: true, messageCallback: onlyErrors })
    if (!succeeded) throw new Error('the declarations could not be put together')
  },
}

/** Its warnings are about comments, and about types that need no name of their own. */
function onlyErrors(message) {
  if (message.logLevel !== 'error') message.logLevel = 'none'
}

/**
 * Whether a module is one of these files of the sources, or in one of these folders.
 * @throws Error naming what is not there: a file that was moved would leave its chunk unnoticed
 */
function isIn(...names) {
  const paths = names.map((name) => join(import.meta.dirname, 'src', name))
  const missing = paths.find((path) => !existsSync(path))
  if (missing !== undefined) throw new Error(`rolldown.config.js names ${missing}, which is not there`)
  return (id) => paths.some((path) => id === path || id.startsWith(path + sep))
}

function either(isFirst, second) {
  return (id) => isFirst(id) || second.test(id)
}

/** Their scripts lie beside the chunks that start them. */
const threads = {
  'stat-worker': 'src/disk/stat-worker.ts',
  'decode-worker': 'src/run/cpu/decode-worker.ts',
  'encode-worker': 'src/run/cpu/encode-worker.ts',
}

/** What is in a chunk is carried out by whoever imports it, so no chunk that others import holds these. */
const isScript = isIn(...Object.values(threads).map((path) => path.slice('src/'.length)))

/** What every thread may import. */
const ofCore = isIn('core', 'transform/mask', 'disk/stat-check.ts', 'threads/thread.ts')

/** What every command needs to know what it was called for, and to say something; with yargs and what that needs. */
const ofEveryCommand = either(
  isIn(
    'cli/command-line/command.ts',
    'cli/command-line/pipeline-options.ts',
    'cli/commands/index.ts',
    'cli/log/log.ts',
    'cli/parse.ts',
    'cli/results/save-file.ts',
    'cli/run-command-line.ts',
    'cli/start.ts',
    'cli/terminal',
  ),
  /node_modules.(?:yargs|cliui)[\\/]/,
)

/** What it takes to know where a data set stands, and to show it. */
const ofDataSets = isIn(
  'cli/results/status-tables.ts',
  'config',
  'disk',
  'plan',
  'run-options.ts',
  'run/admission',
  'run/data-set',
  'run/options.ts',
  'run/plan.ts',
  'run/queries.ts',
  'run/status.ts',
  'state',
)

/** What a run needs that has nothing to request; with these, less what is for requests, for threads or for drawing. */
const ofAnyRun = either(
  isIn(
    'cli/results/summary.ts',
    'cli/work/export-pipeline.ts',
    'extract',
    'report',
    'run/chains',
    'run/cpu',
    'run/report',
    'run/run.ts',
    'run/session.ts',
    'run/summary.ts',
  ),
  /src.load.[a-z-]+\.ts$/,
)
const ofSomeRuns = isIn(
  'extract/index.ts',
  'extract/transport/connections.ts',
  'extract/transport/tunnel.ts',
  'load/aggregate-rows.ts',
  'load/index.ts',
  'report/charts.ts',
  'report/index.ts',
  'run/cpu/inline-work.ts',
)

const shared = {
  platform: 'node',
  logLevel: 'warn',
  // Loaded only when a pipeline asks for it; not made to be bundled.
  external: [
    'parquetjs-lite',
    '@aws-sdk/client-s3',
    '@duckdb/node-api',
    'bullmq',
    'ioredis',
    'pg',
    'pg-copy-streams',
    'pgpass',
  ],
}

// Parts of the sources as tests and benchmarks take them by themselves; no part of the package.
const parts = defineConfig({
  ...shared,
  input: {
    cluster: 'src/cluster/index.ts',
    config: 'src/config/index.ts',
    core: 'src/core/index.ts',
    decoder: 'src/transform/decoder.ts',
    disk: 'src/disk/index.ts',
    'encoder-build': 'src/package/encoder-build.ts',
    journal: 'src/state/journal/journal.ts',
    load: 'src/load/index.ts',
    'run-options': 'src/run-options.ts',
    state: 'src/state/index.ts',
    transform: 'src/transform/index.ts',
    ...threads,
  },
  output: { dir: 'build/parts', format: 'esm' },
})

// Command and library, made of the same chunks, with what they need: finding and opening three hundred files takes
// longer than most commands do. See docs/decisions/0007-bundled-command.md.
const main = defineConfig({
  ...shared,
  input: {
    index: 'src/index.ts',
    main: 'src/cli/main.ts',
    ...threads,
  },
  plugins: [encoderBuild, ascii, notices, executable, declarations],
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: ({ name }) => ({ index: 'index.js', main: 'cli/main.js' })[name] ?? 'chunks/[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    // By itself each few modules that have the same users would be a file, and to find and open one takes a millisecond.
    // The worker threads import no more than the first two of these.
    codeSplitting: {
      groups: [
        { name: 'core', test: ofCore, priority: 2 },
        { name: 'zod', test: /[\\/]node_modules[\\/]zod[\\/]/, priority: 2 },
        { name: 'package', test: /src.package.package-file\.ts$/, priority: 2 },
        { name: 'command-line', test: ofEveryCommand, priority: 1 },
        { name: 'run', test: (id) => ofAnyRun(id) && !ofSomeRuns(id) && !isScript(id), priority: 0 },
        { name: 'data-set', test: (id) => ofDataSets(id) && !isScript(id), priority: 1 },
      ],
    },
  },
})

// One after the other: the second reads what the first makes.
export default [parts, main]
