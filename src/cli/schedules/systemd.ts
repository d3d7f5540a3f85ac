import { shellWord } from '../../core/index.ts'
import { AT, instructions, type Scheduled, UNATTENDED } from './schedule.ts'

/** A service that runs once, and its timer. */
export function systemd(scheduled: Scheduled): readonly string[] {
  const { pipeline, file, folder, envFile, command, user } = scheduled
  const unit = `spillway-${pipeline.name}`
  const call = (...words: readonly string[]) => [...command, ...words].map(unitWord).join(' ')
  const inside = [folder, file, envFile, ...command]
  return [
    ...instructions(
      scheduled,
      `Spillway: export of ${pipeline.name}, every night. As root:`,
      'quoted',
      [
        [
          'Check it in the environment that systemd gives:',
          `systemd-run --pipe --wait --uid=${user} --property=EnvironmentFile=${shellWord(envFile)} --working-directory=${shellWord(folder)} ${[...command, 'check', file].map(shellWord).join(' ')}`,
        ],
        ['Write the two units below into /etc/systemd/system, under the names in their first lines.'],
        [`systemctl daemon-reload && systemctl enable --now ${unit}.timer`],
        [`systemctl start ${unit}: exports now; journalctl --unit ${unit}: its log`],
      ],
      [`Other commands on its data set: sudo -u ${user}, in ${folder}.`],
    ),
    '',
    `# /etc/systemd/system/${unit}.service`,
    '[Unit]',
    `Description=Spillway: export of ${pipeline.name}`,
    'Wants=network-online.target',
    'After=network-online.target',
    '# What is tried again is tried for an hour.',
    'StartLimitIntervalSec=1h',
    'StartLimitBurst=12',
    '',
    '[Service]',
    'Type=oneshot',
    `User=${user}`,
    'UMask=0077',
    `WorkingDirectory=${folder.replaceAll('%', '%%')}`,
    `EnvironmentFile=${envFile.replaceAll('%', '%%')}`,
    `ExecStart=${call('run', file, '--json', ...UNATTENDED)}`,
    'SuccessExitStatus=4 143',
    '# 1 waits for the timer; 2 and 3 need a person; 5 and a kill are tried again.',
    'Restart=on-failure',
    'RestartSec=5min',
    'RestartPreventExitStatus=1 2 3',
    'TimeoutStartSec=infinity',
    'TimeoutStopSec=30s',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
    `ReadWritePaths=${writable(scheduled)
      .map((path) => unitWord(path))
      .join(' ')}`,
    // It would hide Node.js, the command or the files from the unit.
    ...(inside.some((path) => /^\/(?:home|root|run\/user)(?:\/|$)/.test(path)) ? [] : ['ProtectHome=yes']),
    'PrivateTmp=yes',
    'PrivateDevices=yes',
    'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
    '',
    `# /etc/systemd/system/${unit}.timer`,
    '[Unit]',
    `Description=Spillway: export of ${pipeline.name}, every night`,
    '',
    '[Timer]',
    `OnCalendar=*-*-* ${String(AT.hour).padStart(2, '0')}:${AT.minute}:00 UTC`,
    '# A run that was missed while the machine was off starts at boot.',
    'Persistent=true',
    'RandomizedDelaySec=10min',
    '',
    '[Install]',
    'WantedBy=timers.target',
  ]
}

function writable({ folder, pipeline }: Scheduled): readonly string[] {
  const { location } = pipeline.load
  // A data set that is not there yet is made by the first run, if its folder is.
  return location.kind !== 'disk' || `${location.root}/`.startsWith(`${folder}/`)
    ? [folder]
    : [folder, `-${location.root}`]
}

/** Quotes a word of a unit. systemd expands `%` and `$`. */
function unitWord(text: string): string {
  const literal = text.replaceAll('%', '%%').replaceAll('$', () => '$$')
  return /[\s"'\\;]/.test(text) ? `"${literal.replace(/["\\]/g, '\\$&')}"` : literal
}
