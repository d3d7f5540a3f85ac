#!/usr/bin/env node

// Imports nothing statically, so that errors while the rest is loaded are reported too.
try {
  const [word, ...others] = process.argv.slice(2)
  if (word === '--version' && others.length === 0) {
    const { printVersion } = await import('./print-version.ts')
    printVersion()
  } else {
    const { start } = await import('./start.ts')
    process.exitCode = await start()
  }
} catch (error) {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code !== 'EMFILE' && code !== 'ENFILE') throw error
  process.stderr.write('spillway: Too many files are open. Raise the limit (ulimit -n), then run again.\n')
  process.exitCode = 1
}
