#!/usr/bin/env node

// Imports nothing statically, so that errors while the rest is loaded are reported too.
try {
  const [word, ...others] = process.argv.slice(2)
  if (word === '--version' && others.length === 0) {
    // It needs no other module.
    const { version } = await import('../package/index.ts')
    process.stdout.write(`${version}\n`)
  } else {
    const { start } = await import('./run-command-line.ts')
    process.exitCode = await start()
  }
} catch (error) {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code !== 'EMFILE' && code !== 'ENFILE') throw error
  process.stderr.write('spillway: Too many files are open. Raise the limit (ulimit -n), then run again.\n')
  process.exitCode = 1
}
