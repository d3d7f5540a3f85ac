import { createRequire } from 'node:module'
import { ExportError, type Format } from '../../core/index.ts'

const PACKAGE = 'parquetjs-lite'
const packages = createRequire(import.meta.url)

/** parquetjs-lite is optional, since nobody maintains it. @throws ExportError `config` when it is not installed */
export function requireEngine({ engine }: Format): void {
  if (engine !== PACKAGE) return
  try {
    packages.resolve(PACKAGE)
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: `The engine ${PACKAGE} needs the package ${PACKAGE}, which is not installed`,
      where: 'load.engine',
      next: `Leave out load.engine, install spillway with its optional dependencies, or run \`npm install ${PACKAGE}\` beside it.`,
      cause,
    })
  }
}

/** Loaded on first use: it is much code. */
export function loadParquetjsLite(): typeof import('parquetjs-lite').default {
  return packages(PACKAGE)
}
