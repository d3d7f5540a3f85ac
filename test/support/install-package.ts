import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
export const ROOT = join(import.meta.dirname, '../..')

/** Files of a fresh clone that the build and the package need. */
const CLONED = [
  ...'src test docs pipelines package.json package-lock.json tsconfig.json tsconfig.build.json'.split(' '),
  ...'rolldown.config.js build.mjs publish-build.mjs README.md LICENSE CHANGELOG.md'.split(' '),
]

export type PackedFile = { readonly path: string; readonly integrity: string }

/** `npm pack` in a clone where nothing was built yet. @param folder gets the clone and the package */
export async function packFreshClone(folder: string): Promise<PackedFile> {
  const clone = join(folder, 'clone')
  const filter = (path: string): boolean => !path.endsWith('/node_modules')
  await mkdir(clone)
  await Promise.all(
    CLONED.map((name) => cp(join(ROOT, name), join(clone, name), { recursive: true, filter })),
  )
  for (const name of ['node_modules', 'test/thorough/node_modules'])
    await symlink(join(ROOT, name), join(clone, name))
  const { stdout } = await npm(clone, 'pack', '--json', '--silent', '--pack-destination', folder)
  // The output of the build comes first.
  const [{ filename, integrity }] = JSON.parse(stdout.slice(stdout.search(/^\[/m)))
  return { path: join(folder, filename), integrity }
}

/**
 * Installs a package into an empty folder as its users do, but in the versions that the lock file names: npm has
 * them in its cache since it installed this repository, so that no network is needed. If both the
 * cache and the network are missing, the packages are copied.
 */
export async function installPackage({ path, integrity }: PackedFile, folder: string): Promise<void> {
  const { version, dependencies, optionalDependencies, bin, engines } = await json(join(ROOT, 'package.json'))
  const { packages } = await json(join(ROOT, 'package-lock.json'))
  const needed = Object.entries<{ dev?: boolean }>(packages).filter(([name, { dev }]) => name !== '' && !dev)
  const manifest = { private: true, type: 'module', dependencies: { spillway: `file:${path}` } }
  const needs = { dependencies, optionalDependencies, bin, engines }
  const spillway = { version, resolved: `file:${path}`, integrity, ...needs }
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  const locked = { '': manifest, 'node_modules/spillway': spillway, ...Object.fromEntries(needed) }
  const lock = { lockfileVersion: 3, requires: true, packages: locked }
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lock))
  try {
    await npm(folder, 'ci', '--prefer-offline', '--no-audit', '--no-fund', '--fetch-retries=0')
  } catch (error) {
    if (!UNREACHABLE.test(String(error))) throw error
    const names = needed.map(([name]) => name)
    await copyDependencies(path, folder, names)
  }
}

const UNREACHABLE = /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/

async function copyDependencies(packed: string, folder: string, dependencies: string[]): Promise<void> {
  const own = join(folder, 'node_modules/spillway')
  await mkdir(own, { recursive: true })
  await execute('tar', ['xzf', packed, '-C', own, '--strip-components=1'])
  // Nested packages are copied with the package that contains them.
  const topLevel = dependencies.filter((name) => !name.includes('/node_modules/'))
  await Promise.all(
    topLevel.map((name) => cp(join(ROOT, name), join(folder, name), { recursive: true, dereference: true })),
  )
  await mkdir(join(folder, 'node_modules/.bin'))
  // As npm does.
  await chmod(join(own, 'dist/cli/main.js'), 0o755)
  await symlink('../spillway/dist/cli/main.js', join(folder, 'node_modules/.bin/spillway'))
}

function npm(cwd: string, ...words: string[]) {
  // The npm under test must not get the settings of the npm that runs the tests, such as its prefix.
  const isOther = ([name]: [string, unknown]) => !/^npm_(?:config_(?!cache|registry)|package_)/i.test(name)
  const env = Object.fromEntries(Object.entries(process.env).filter(isOther))
  return execute('npm', words, { cwd, env, maxBuffer: 1 << 24 })
}

const json = async (path: string) => JSON.parse(await readFile(path, 'utf8'))
