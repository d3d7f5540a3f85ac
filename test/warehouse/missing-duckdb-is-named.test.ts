import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { exits } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'

const asUrl = (script: string): string => `data:text/javascript,${encodeURIComponent(script)}`

/** As if the package, or its library for the system, failed like this. */
function failing(error: string): Readonly<Record<string, string>> {
  const found = JSON.stringify({ url: asUrl(`throw ${error}`), shortCircuit: true })
  const hooks = `export const resolve = async (name, context, next) => name === '@duckdb/node-api' ? ${found} : next(name, context)`
  const script = `import { register } from 'node:module'; register(${JSON.stringify(asUrl(hooks))})`
  return { NODE_OPTIONS: `--import=${asUrl(script)}` }
}

const withCode = (message: string, code: string): string =>
  `Object.assign(new Error(${JSON.stringify(message)}), { code: '${code}' })`

it.each([
  [
    'absent',
    withCode('Cannot find package', 'ERR_MODULE_NOT_FOUND'),
    /DuckDB, which is not installed, or not for this system/,
  ],
  [
    'there and not to be loaded',
    withCode('libduckdb.so: cannot open shared object file', 'ERR_DLOPEN_FAILED'),
    /DuckDB is installed and cannot be loaded [(]ERR_DLOPEN_FAILED[)]/,
  ],
])('DuckDB that is %s is named, with both packages to install: exit 2', async (name, error, message) => {
  const here = await exportedWorkspace({})
  Object.assign(here.env, failing(error))
  const bothPackages = /npm install @duckdb\/node-api@\S+ @duckdb\/node-bindings-\w+-\w+@\S+$/m
  await exits(2, here.call('query', 'SELECT 1'), message, bothPackages)
  // The page is written without what only rows tell.
  if (THOROUGH || name === 'absent') expect((await here.call('summary')).code).toBe(0)
})
