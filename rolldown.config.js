import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { defineConfig } from 'rolldown'
import { thoroughPackage } from './test/thorough/packages.mjs'

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
// library refer to. Only the package needs it: here they refer to packages that are installed.
const declarations = {
  name: 'declarations',
  async writeBundle({ dir }) {
    if (!process.argv.includes('--alone'))
      return writeFileSync(join(dir, 'index.d.ts'), "export * from '../build/types/index.js'\n")
    const extractor = '@microsoft/api-extractor'
    const { Extractor, ExtractorConfig } = await import(extractor).catch(() => thoroughPackage(extractor))
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

const SRC = join(import.meta.dirname, 'src') + sep
const folderOf = (path) => path.slice(SRC.length).split(sep)[0]

/** The modules of a folder that one of them reaches without a dynamic import. */
function reachedFrom(path, reached = new Set()) {
  if (reached.has(path) || !existsSync(path)) return reached
  reached.add(path)
  const imports = readFileSync(path, 'utf8').matchAll(
    /^(?:import|export)\b(?! type)[^;']*? from '(\.[^']+)'/gms,
  )
  for (const [, to] of imports) {
    const target = join(dirname(path), to)
    const isCommand = basename(path) === 'index.ts' && to.startsWith('./commands/')
    if (folderOf(target) === folderOf(path) && !isCommand) reachedFrom(target, reached)
  }
  return reached
}

/**
 * The chunk of each module: that of its folder, if the folder's index reaches it, but not as a command. The command line
 * has no index: its chunk is what every command needs. What is imported dynamically, commands, and packages have others.
 */
const CHUNKS = new Map(
  readdirSync(SRC)
    .flatMap((name) => [join(SRC, name, name === 'cli' ? 'run-command-line.ts' : 'index.ts')])
    .flatMap((begin) => Array.from(reachedFrom(begin), (path) => [path, folderOf(path)])),
)

const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'),
)

/** By package: the one that the sources name, which needs it. */
const NEEDED_BY = new Map(Object.keys(devDependencies).map((name) => [name, name]))
// This loop also visits what it adds.
for (const [name, by] of NEEDED_BY) {
  const file = join(import.meta.dirname, 'node_modules', name, 'package.json')
  const needed = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')).dependencies ?? {}) : {}
  for (const each of Object.keys(needed)) if (!NEEDED_BY.has(each)) NEEDED_BY.set(each, by)
}

/** A package is a chunk, with those that it needs: rolldown would divide some in the middle of a circle. */
const packageOf = (id) => {
  const name = /[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(id)?.[1].replaceAll('\\', '/')
  return name === undefined ? null : (NEEDED_BY.get(name) ?? name).replaceAll(/[@/]/g, '-')
}

const chunkOf = (id) => CHUNKS.get(id) ?? packageOf(id)

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
    'encoder-build': 'src/package/index.ts',
    journal: 'src/state/log/lines.ts',
    load: 'src/load/index.ts',
    rows: 'src/rows/index.ts',
    'run-options': 'src/run-options.ts',
    sandbox: 'test/support/sandbox.ts',
    state: 'src/state/index.ts',
    transform: 'src/transform/index.ts',
  },
  output: { dir: 'build/parts', format: 'esm' },
})

// The command and the library. They share chunks, which include their dependencies: opening three hundred files takes
// longer than most commands. publish-build.mjs gives the folder of the chunks a name of its own.
// Cost: a command loads folders whole, 40 ms of processor time.
const main = defineConfig({
  ...shared,
  input: {
    index: 'src/index.ts',
    main: 'src/cli/main.ts',
  },
  preserveEntrySignatures: 'allow-extension',
  plugins: [ascii, notices, executable, declarations],
  output: {
    format: 'esm',
    entryFileNames: ({ name }) => ({ index: 'index.js', main: 'cli/main.js' })[name] ?? 'chunks/[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    // Without groups, each set of modules with the same importers becomes a file, and opening a file takes a
    // millisecond.
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: chunkOf, test: (id) => chunkOf(id) !== null }],
    },
  },
})

// build.mjs builds them.
export default [parts, main]
