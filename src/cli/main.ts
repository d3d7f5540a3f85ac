#!/usr/bin/env node

const { node } = process.versions
const [major = 0, minor = 0] = node.split('.').map(Number)

function refuse(message: string, exitCode: number): void {
  process.stderr.write(`spillway: ${message}\n`)
  process.exitCode = exitCode
}

// Imports nothing statically: an older Node cannot read the rest, and errors while it is loaded are reported too.
if (major < 20 || (major === 20 && minor < 19)) {
  refuse(`This is Node ${node}, and spillway needs 20.19 or newer: install one from https://nodejs.org.`, 2)
} else {
  try {
    const [word, ...others] = process.argv.slice(2)
    if (['--version', '-v', 'version'].includes(word ?? '') && others.length === 0) {
      const { version } = await import('../package/index.ts')
      process.stdout.write(`${version}\n`)
    } else {
      const { start } = await import('./run-command-line.ts')
      process.exitCode = await start()
    }
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === 'EMFILE' || code === 'ENFILE') {
      refuse('Too many files are open. Raise the limit (ulimit -n), then run again.', 1)
    } else if (syscall === 'uv_cwd') {
      refuse('The working directory is gone. Change to a folder that is there, then run again.', 2)
    } else throw error
  }
}
