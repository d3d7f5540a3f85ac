import { readdirSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const ROOT = resolve(import.meta.dirname, '../..')
const SOURCES = join(ROOT, 'src')
const BUILT = join(ROOT, 'build/sources')

/** Tells Vitest to leave the built sources to Node. */
export const isBuiltSource = /[\\/]build[\\/]sources[\\/]/

/**
 * Builds each file of `src` to a file of its own, and returns the plugin with which tests import these. Vitest would
 * transform each module, and look each import up where it is used: that takes a sixth more processor time. Stack traces
 * have the lines of the built files.
 * @param plugins transform the sources as well
 */
export async function builtSources(...plugins: Plugin[]) {
  const bundle = await rolldown({
    input: readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(SOURCES, name)),
    // Packages, but for the helpers that rolldown adds.
    external: /^(?!@oxc-project)[a-z@]/,
    platform: 'node',
    treeshake: false,
    logLevel: 'warn',
    plugins: [...plugins, keepUrls],
  })
  await bundle.write({
    dir: BUILT,
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: SOURCES,
    entryFileNames: '[name].mjs',
  })
  return {
    name: 'built-sources',
    enforce: 'pre' as const,
    resolveId(id: string, importer: string | undefined) {
      if (!id.startsWith('.') || importer === undefined) return
      const path = resolve(importer, '..', id)
      if (path.startsWith(SOURCES + sep) && path.endsWith('.ts'))
        return join(BUILT, relative(SOURCES, path)).replace(/ts$/, 'mjs')
    },
  }
}

/** Sources find files of the package by their URL, and start no threads where it is one of a source. */
const keepUrls: Plugin = {
  name: 'keep-urls',
  transform: (code, id) => code.replaceAll('import.meta.url', () => JSON.stringify(pathToFileURL(id).href)),
}
