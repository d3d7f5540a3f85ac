import { shellWord } from '../../core/index.ts'
import { AT, instructions, type Scheduled, UNATTENDED } from './schedule.ts'

/** A line for a crontab, which prints, so that cron mails it, only what needs a person. */
export function cron(scheduled: Scheduled): readonly string[] {
  const { pipeline, file, folder, envFile, command, user } = scheduled
  const call = (...words: readonly string[]) => [...command, ...words].map(shellWord).join(' ')
  const begin = `umask 077 && cd ${shellWord(folder)} && set -a && . ${shellWord(envFile)} && set +a`
  const log = shellWord(`${folder}/${pipeline.name}.log`)
  const failed = `echo ${shellWord(`spillway run ${file}: exit`)} $code; ${call('status', file)} 2>&1`
  const job = [
    `${begin} && ${call('run', file, '--json', ...UNATTENDED)} >>${log} 2>&1;`,
    `code=$?; case $code in 0|4|143) ;; *) ${failed} ;; esac`,
  ].join(' ')
  const check = `${begin} && ${call('check', file)}`
  return [
    ...instructions(
      scheduled,
      `Spillway: export of ${pipeline.name}, every night at ${AT.hour}:${AT.minute} of the machine's time.`,
      'quoted',
      [
        [
          'Check it in the environment that cron gives:',
          `env -i HOME="$HOME" PATH=/usr/bin:/bin sh -c ${shellWord(check)}`,
        ],
        [`Append the last line to the crontab of ${user} (crontab -e).`],
      ],
    ),
    `${AT.minute} ${AT.hour} * * * ${job.replaceAll('%', '\\%')}`,
  ]
}
