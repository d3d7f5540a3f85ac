import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { defineConfig } from 'rolldown'

// Of undici the command needs its agent, which the entry point loads along with fetch, WebSocket and mocks: a tenth
// of a second that every run would pay. What the entry point puts on every dispatcher (request, connect and the like)
// is not there; extract/ uses `dispatch` alone, over HTTP/1.1, with bodies that are texts.
const onlyTheAgent = {
  name: 'only-the-agent',
  resolveId: (id, importer) => {
    if (id === 'undici') return '\0undici'
    const isUnused = id.endsWith('/client-h2.js') || id.endsWith('/web/fetch/body.js')
    return isUnused && importer?.includes('undici') ? `\0unused:${id}` : null
  },
  load: (id) => {
    if (id.startsWith('\0unused:')) {
      return `module.exports = () => { throw new Error('${id.slice(1)} is not in the bundle') }`
    }
    return id === '\0undici'
      ? `export { default as Agent } from 'undici/lib/dispatcher/agent.js'
         export { default as buildConnector } from 'undici/lib/core/connect.js'`
      : null
  },
}

// What yargs measures its texts by knows every emoji, and takes a third of the time in which yargs loads to learn them;
// and for two checks of its own yargs loads all of node:assert.
const forYargs = {
  name: 'for-yargs',
  resolveId: (id, importer) => {
    if (id === 'string-width') return '\0string-width'
    return id === 'assert' && importer?.includes('yargs') ? '\0assert' : null
  },
  load: (id) => {
    switch (id) {
      case '\0string-width':
        return `import { stripVTControlCharacters } from 'node:util'
                import { widthOf } from '${import.meta.dirname}/src/cli/width.ts'
                export default (text) => widthOf(stripVTControlCharacters(text))`
      case '\0assert':
        return `const must = (isSo, message) => { if (!isSo) throw new Error(message) }
                export const strictEqual = (is, expected, message) => must(Object.is(is, expected), message)
                export const notStrictEqual = (is, other, message) => must(!Object.is(is, other), message)`
    }
    return null
  },
}

// Node.js is given the modules of yaml in an older form, of which nothing can be left out.
const yamlModules = {
  name: 'yaml-modules',
  resolveId: (id) =>
    id === 'yaml' ? join(import.meta.dirname, 'node_modules/yaml/browser/dist/index.js') : null,
}

// What the encoders' sources come to, for the footers of Parquet files. `tsc` has compiled what computes it.
const encoderBuild = {
  name: 'encoder-build',
  async buildStart() {
    const { encoderDigest } = await import('./dist/package/encoder-build.js')
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
  'The files in this folder hold code of the packages below, each under the licence that follows its name.\n'

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

/** Whether a module is of one of these folders of the sources. */
function isIn(...folders) {
  const paths = folders.map((folder) => join(import.meta.dirname, 'src', folder, sep))
  return (id) => paths.some((path) => id.startsWith(path))
}

function either(isFirst, second) {
  return (id) => isFirst(id) || second.test(id)
}

/** What every thread may import. Not the scripts of threads: what is in a chunk is carried out by whoever imports it. */
const ofCore = either(isIn('core', 'transform/mask'), /src.(?:disk.looks?|threads.thread)\.ts$/)

/** What every command needs; none of it imports more than core/. */
const ofEveryCommand = either(
  isIn('package'),
  /src.cli.(?:command|exit-code|log|output|plain-text|quantities|screen|shell|signals|style|width)\.ts$/,
)

/** What it takes to know where a data set stands, and to show it. */
const ofDataSets = either(
  isIn('config', 'disk', 'plan', 'state', 'run/admission', 'run/data-set', 'run/setting'),
  /src.(?:run.(?:plan|partition-status|query-status|status)|run-options|cli.(?:[a-z]+-table|partition-choice))\.ts$/,
)

// The command is bundled with what it needs: finding and opening three hundred files takes longer than most
// commands do. See docs/decisions/0007-bundled-command.md.
export default defineConfig({
  input: [
    'src/cli/main.ts',
    'src/disk/look-worker.ts',
    'src/run/cpu/decode-worker.ts',
    'src/run/cpu/encode-worker.ts',
  ],
  platform: 'node',
  logLevel: 'warn',
  // Loaded only when a pipeline asks for it; not made to be bundled.
  external: ['parquetjs-lite', '@aws-sdk/client-s3', '@duckdb/node-api', 'pg', 'pg-copy-streams'],
  plugins: [onlyTheAgent, forYargs, yamlModules, encoderBuild, notices],
  output: {
    dir: 'dist/cli',
    format: 'esm',
    chunkFileNames: '[name]-[hash].js',
    // By itself each few modules that have the same users would be a file, and to find and open one takes a millisecond.
    // The worker threads import no more than the first two of these.
    codeSplitting: {
      groups: [
        { name: 'core', test: ofCore, priority: 2 },
        { name: 'zod', test: /[\\/]node_modules[\\/]zod[\\/]/, priority: 2 },
        { name: 'shell', test: ofEveryCommand, priority: 2 },
        { name: 'data-set', test: (id) => ofDataSets(id) && !id.endsWith('-worker.ts'), priority: 1 },
      ],
    },
  },
})
