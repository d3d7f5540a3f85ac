/** Compiles this folder to WebAssembly. `npm run build` runs it. It writes nothing while the sources are the same. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const WRITTEN = join(import.meta.dirname, '../item-walker.wasm')

// Addresses stay below 2 GB: above, JavaScript would read negative ones.
const OPTIONS = '--enable simd --runtime stub --noAssert --initialMemory 300 --maximumMemory 32768 -O3'.split(
  ' ',
)

/** AssemblyScript takes 100 MB, so it is in a project of its own. */
const COMPILER = join(import.meta.dirname, '../../../../test/thorough')

/** @returns the compiled walker @throws Error when the sources do not compile */
export async function assemble() {
  const { default: asc } = await import(join(COMPILER, 'asc.mjs')).catch((cause) => {
    throw new Error('AssemblyScript is not installed: npm ci --prefix test/thorough', { cause })
  })
  let binary
  const errors = []
  const { error } = await asc.main(['item-walker.ts', '--outFile', 'walker.wasm', ...OPTIONS], {
    readFile: (name) => {
      try {
        return readFileSync(join(import.meta.dirname, name), 'utf8')
      } catch {
        return null
      }
    },
    writeFile: (name, contents) => {
      if (name === 'walker.wasm') binary = contents
    },
    listFiles: () => [],
    stderr: { write: (text) => errors.push(text) },
  })
  if (error !== null || binary === undefined) throw new Error(errors.join(''), { cause: error })
  return Buffer.concat([binary, customSection('sources', digestOfSources())])
}

/** A part of a WebAssembly file that says something of it: number 0, its length, its name and its text, each under 128 bytes. */
function customSection(name, text) {
  const content = Buffer.from(`${String.fromCharCode(name.length)}${name}${text}`, 'latin1')
  return Buffer.from([0, content.length, ...content])
}

/** Changes with everything that the compiled walker depends on: this folder, and the compiler. */
function digestOfSources() {
  const { dependencies } = JSON.parse(readFileSync(join(COMPILER, 'package.json'), 'utf8'))
  const digest = createHash('sha256').update(dependencies.assemblyscript)
  for (const name of readdirSync(import.meta.dirname).sort()) {
    digest.update(`\0${name}\0`).update(readFileSync(join(import.meta.dirname, name)))
  }
  return digest.digest('hex')
}

/** Compiling takes five seconds of processor time. */
function isUpToDate() {
  return existsSync(WRITTEN) && readFileSync(WRITTEN, 'latin1').includes(digestOfSources())
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !isUpToDate()) {
  writeFileSync(WRITTEN, await assemble())
}
