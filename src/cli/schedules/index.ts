import { cron } from './cron.ts'
import { kubernetes } from './kubernetes.ts'
import type { Scheduled } from './schedule.ts'
import { systemd } from './systemd.ts'

/** The schedulers that `init --for` knows. */
export const SCHEDULES = { cron, systemd, kubernetes } satisfies Record<
  string,
  (scheduled: Scheduled) => readonly string[] | Promise<readonly string[]>
>
