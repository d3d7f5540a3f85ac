import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor'
import { defineConfig } from 'rolldown'

// Writes the licence texts of all packages that the bundle contains: their licences require it.
const notices = {
  name: 'notices',
  generateBundle(_options, bundle) {
    const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
    const folders = modules.map((id) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)?.[0])
    const packages = [...new Set(folders.filter((folder) => folder !== undefined))]
    // A package may be installed twice.
    const texts = [...new Set(packages.map(noticeOf))].sort()
    const source = `${NOTICES_HEAD}\n${texts.join('\n')}`
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-NOTICES.txt', source })
  },
}

const NOTICES_HEAD =
  'The files in this folder and below hold code of the packages below, each under the licence that follows its name.\n'

/** The licence and notice texts of a package. @throws Error when it has none */
function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying|copyright)/i.test(file))
  if (files.length === 0) throw new Error(`${name} is in the bundle and has no file with its licence`)
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return [`${'='.repeat(80)}\n${name} ${version} (${license})`, ...texts, ''].join('\n\n')
}

// V8 stores a source with any character beyond Latin-1 as two bytes per character, for the lifetime of the thread.
const ascii = {
  name: 'ascii',
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === 'chunk') file.code = file.code.replace(NOT_ASCII, escaped)
    }
  },
}

const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Matches single UTF-16 units, because an escape sequence is for one unit. */
const NOT_ASCII = /[^\0-\x7f]/g

// npm makes the command of an installed package executable, but `npm link` links to the built file.
const executable = {
  name: 'executable',
  writeBundle: ({ dir }) => chmodSync(join(dir, 'cli/main.js'), 0o755),
}

// Merges the declarations that `tsc` writes for each file into one file, with only the types that the exports of the
// library refer to.
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
    if (!succeeded) throw new Error('api-extractor could not merge the declarations into dist/index.d.ts')
  },
}

/** Hides warnings. They are about comments, and about types that are not exported. */
function onlyErrors(message) {
  if (message.logLevel !== 'error') message.logLevel = 'none'
}

/**
 * Returns a test whether a module is one of these source files, or in one of these folders.
 * @throws Error when one of them does not exist: a moved file would leave its chunk without notice
 */
function isIn(...names) {
  const paths = names.map((name) => join(import.meta.dirname, 'src', name))
  const missing = paths.find((path) => !existsSync(path))
  if (missing !== undefined) throw new Error(`rolldown.config.js names ${missing}, which does not exist`)
  return (id) => paths.some((path) => id === path || id.startsWith(path + sep))
}

function either(isFirst, second) {
  return (id) => isFirst(id) || second.test(id)
}

/** Scripts of worker threads. They are in the same folder as the chunks that start them. */
const threads = {
  worker: 'src/run/cpu/worker.ts',
}

/** Importing a chunk runs its modules, so the script of a thread must not be in a chunk that others import. */
const isThreadScript = isIn(...Object.values(threads).map((path) => path.slice('src/'.length)))

/** The schemas of the journal: only what reads a state needs them, and zod with them. */
const SCHEMAS = 'state/journal-entry.ts'

/** Modules that every thread may import. */
const isForThreads = isIn(
  'core',
  'rows',
  'load/encode/decode-record-batches.ts',
  'load/encode/engine-package.ts',
  'load/encode/record-batch-column.ts',
  'load/take-rows.ts',
  'threads/thread.ts',
  'transform/mask',
)
const inCore = (id) => isForThreads(id) && !isIn(SCHEMAS)(id)

/** Modules with which every command parses its arguments and prints; with yargs and its dependencies. */
const inCommandLine = either(
  isIn(
    'cli/command-line/command.ts',
    'cli/command-line/pipeline-options.ts',
    'cli/commands/index.ts',
    'cli/log/log.ts',
    'cli/parse.ts',
    'cli/results/flag-file.ts',
    'cli/results/save-file.ts',
    'cli/run-command-line.ts',
    'cli/terminal',
  ),
  /node_modules.(?:yargs|cliui)[\\/]/,
)

/** Modules that read the state of a data set and print it. */
const inDataSet = isIn(
  'cli/results/status-tables.ts',
  'pipeline',
  SCHEMAS,
  'disk',
  'run-options.ts',
  'run/admission',
  'run/forecast.ts',
  'run/options.ts',
  'run/plan.ts',
  'data-set/completeness.ts',
  'data-set/clear-data-set.ts',
  'data-set/find-state.ts',
  'data-set/links.ts',
  'data-set/look.ts',
  'data-set/read-manifest.ts',
  'data-set/read-shard.ts',
  'data-set/restore.ts',
  'data-set/success-mark.ts',
  'data-set/table-owner.ts',
  'data-set/index.ts',
  'data-set/open-checkpoint.ts',
  'data-set/open-data-set.ts',
  'data-set/options.ts',
  'data-set/plan-state.ts',
  'data-set/publish.ts',
  'data-set/quarantine-limit.ts',
  'data-set/queries.ts',
  'data-set/recover.ts',
  'data-set/redo/invalidate.ts',
  'data-set/same-queries.ts',
  'data-set/scope.ts',
  'data-set/status.ts',
  'data-set/suppression.ts',
  'state',
)

/** Modules of every run, even if it has nothing to request; without those for requests and threads. */
const inRun = either(
  isIn(
    'cli/results/summary.ts',
    'cli/work/export-pipeline.ts',
    'extract',
    'http',
    'summary',
    'run/chains',
    'run/cpu',
    'run/pages-without-secrets.ts',
    'data-set/encode-settings.ts',
    'data-set/fill-empty-data-set.ts',
    'data-set/quarantine-files.ts',
    'data-set/redo/replace.ts',
    'data-set/replace-manifest.ts',
    'data-set/settle.ts',
    'data-set/shard-set-options.ts',
    'data-set/summary-page',
    'data-set/open-tables.ts',
    'run/run.ts',
    'run/session.ts',
    'run/summary.ts',
  ),
  /src.load.[a-z-]+\.ts$/,
)
const inSomeRuns = isIn(
  'extract/index.ts',
  'http/connections.ts',
  'http/tunnel.ts',
  'load/index.ts',
  'load/shard-coder.ts',
  'summary/index.ts',
  'run/cpu/in-this-thread.ts',
)

const { dependencies, optionalDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'),
)

const shared = {
  platform: 'node',
  logLevel: 'warn',
  // Merging the declarations takes most of the time, which is known.
  checks: { bundlerTimings: false },
  // Loaded only when a pipeline needs them. They do not work in a bundle.
  external: Object.keys({ ...dependencies, ...optionalDependencies }),
}

// Parts of the sources that tests and benchmarks import. They are not in the package.
const parts = defineConfig({
  ...shared,
  input: {
    cluster: 'src/cluster/index.ts',
    pipeline: 'src/pipeline/index.ts',
    core: 'src/core/index.ts',
    'plain-pages': 'test/transform/plain-pages.ts',
    disk: 'src/disk/index.ts',
    'encoder-build': 'src/package/encoder-build.ts',
    journal: 'src/state/log/lines.ts',
    load: 'src/load/index.ts',
    rows: 'src/rows/index.ts',
    'run-options': 'src/run-options.ts',
    sandbox: 'test/support/sandbox.ts',
    state: 'src/state/index.ts',
    transform: 'src/transform/index.ts',
    ...threads,
  },
  output: { dir: 'build/parts', format: 'esm' },
})

// The command and the library. They share chunks, which include their dependencies: opening three hundred files takes
// longer than most commands. publish-build.mjs gives the folder of the chunks a name of its own.
// See docs/decisions/0007-bundled-command.md.
const main = defineConfig({
  ...shared,
  input: {
    index: 'src/index.ts',
    main: 'src/cli/main.ts',
    ...threads,
  },
  plugins: [ascii, notices, executable, declarations],
  output: {
    format: 'esm',
    entryFileNames: ({ name }) => ({ index: 'index.js', main: 'cli/main.js' })[name] ?? 'chunks/[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    // Without groups, each set of modules with the same importers becomes a file, and opening a file takes a
    // millisecond. Worker threads import only chunks of the first four groups, and their own.
    codeSplitting: {
      groups: [
        { name: 'core', test: inCore, priority: 2 },
        { name: 'zod', test: /[\\/]node_modules[\\/]zod[\\/]/, priority: 2 },
        { name: 'item-schema', test: isIn('transform/schema.ts'), priority: 2 },
        { name: 'columns', test: isIn('transform/columns', 'transform/id-set.ts'), priority: 3 },
        { name: 'package', test: /src.package.package-file\.ts$/, priority: 2 },
        { name: 'command-line', test: inCommandLine, priority: 1 },
        { name: 'run', test: (id) => inRun(id) && !inSomeRuns(id) && !isThreadScript(id), priority: 0 },
        { name: 'data-set', test: (id) => inDataSet(id) && !isThreadScript(id), priority: 1 },
      ],
    },
  },
})

// build.mjs builds them.
export default [parts, main]
