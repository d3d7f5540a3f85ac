import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Command } from '../../src/cli/command-line/command.ts'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'

async function command(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await carryOut({ args, env, cwd: scratchFolder() })
  return { code, stdout, stderr }
}

it('help lists the commands in groups, and the exit codes', async () => {
  const { code, stdout, stderr } = await command(['--help'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const groups = new Set(Object.values(COMMANDS).map(({ group }) => group))
  expect([...groups]).toEqual(['Export', 'Inspect', 'Deliver', 'Comply', 'Tools'])
  for (const group of groups) {
    const names = Object.keys(COMMANDS).filter((name) => COMMANDS[name]!.group === group)
    const [, lines = ''] = stdout.split(`${group}:\n`)
    const listed = [...lines.split('\n\n')[0]!.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)
    expect([group, listed]).toEqual([group, names])
  }
  expect(stdout).toContain('129, 130, 143  interrupted')
  for (const words of [['help'], ['-h']]) expect(await command(words)).toEqual({ code, stdout, stderr })
})

it('help, -h, version and -v work as words and letters do elsewhere', async () => {
  const { stdout } = await command(['run', '--help'])
  for (const words of ['help run', 'run -h', '-h run'])
    expect(await command(words.split(' '))).toEqual({ code: 0, stdout, stderr: '' })
  expect(await command(['help', 'nosuch'])).toMatchObject({ code: 2, stdout: '' })
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  for (const words of [['version'], ['-v'], ['--version']])
    expect(await command(words)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

const WITH_EXAMPLES = 'run plan status verify load query ddl check report sandbox init schema demo'.split(' ')

it.each(['80', '60'])('no help is wider than %s columns, and its examples can be copied', async (COLUMNS) => {
  const scripts: string[] = []
  for (const name of ['', ...Object.keys(COMMANDS)]) {
    const { stdout } = await command([...(name === '' ? [] : [name]), '--help'], { COLUMNS })
    expect(stdout.split('\n').filter((line) => line.length > Number(COLUMNS))).toEqual([])
    // Types, which yargs would put right behind a description that fills the line.
    expect(stdout).not.toMatch(/\[(?:string|boolean|number|array)\]/)
    const [, examples] = stdout.split('Examples:\n')
    const least = WITH_EXAMPLES.includes(name) ? 2 : 0
    if (examples === undefined && least === 0) continue
    const script = examples!.trimEnd().split('\n\n')[0]!
    scripts.push(script)
    // A shell joins the lines that a backslash ends.
    const lines = script.replace(/ \\\n +/g, ' ').split('\n')
    for (const line of lines) expect(line).toMatch(/^ {2}(?:# |spillway )/)
    expect(lines.filter((line) => line.startsWith('  spillway ')).length).toBeGreaterThanOrEqual(least)
  }
  execFileSync('/bin/sh', ['-n', '-c', scripts.join('\n')])
})

it('the help of a flag names its choices and its default', async () => {
  for (const name of Object.keys(COMMANDS)) {
    const exported: object = await import(`../../src/cli/commands/${name}.ts`)
    const isCommand = (value: Partial<Command>) => typeof value?.run === 'function'
    const { flags = {} } = Object.values(exported).find(isCommand) as Command
    for (const { choices = [], default: byDefault, describe = '' } of Object.values(flags)) {
      for (const choice of choices) expect(describe).toContain(String(choice))
      if (byDefault !== undefined && typeof byDefault !== 'boolean') expect(describe).toMatch(/\[.*\]$/)
    }
  }
})

it.each([
  [['spillway', 'st'], /^run\n.*^status\n/ms],
  [['spillway', 'run', '--'], /^--from\n.*^--metrics-file\n/ms],
  [['spillway', 'status', 'a.yaml', '--state', ''], /^failed\npartial\npending\ndone\npruned\n$/],
  [['spillway', 'report', '1', '--format', ''], /^markdown\njson\n$/],
  // The shell completes file names.
  [['spillway', 'run', 'a'], /^\n?$/],
])('the shell completes %j', async (words, expected) => {
  const { code, stdout } = await command(['--get-yargs-completions', ...words])
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(expected) })
})

it('completion is a script for the shell', async () => {
  const { code, stdout } = await command(['completion'])
  expect(code).toBe(0)
  expect(stdout).toContain('spillway --get-yargs-completions')
})

it('without a command the help is shown on stderr, with exit 2', async () => {
  const { code, stdout, stderr } = await command([])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^spillway <command>\n.*^ {2}run .*No command is given\./ms)
})
