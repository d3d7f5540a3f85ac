import { isAbsolute } from 'node:path'
import { ExportError, shellWord } from '../../core/index.ts'
import { AT, instructions, type Scheduled, UNATTENDED } from './schedule.ts'

const MOUNT = '/etc/spillway'

/** A ConfigMap with the pipeline file, a claim for the data set, and a CronJob. */
export async function kubernetes(scheduled: Scheduled): Promise<readonly string[]> {
  const { pipeline, file, envFile, version, text } = scheduled
  if (scheduled.namesOthers) {
    throw new ExportError({
      kind: 'config',
      what: 'The file names others (extends, domains_file), and a ConfigMap would lack them',
      where: file,
      next: `Make one file of them, and name that: spillway check ${shellWord(file)} --resolved.`,
    })
  }
  const { stringify } = await import('yaml')
  const name = `spillway-${pipeline.name}`
  const key = `${pipeline.name}.yaml`
  const isOnDisk = pipeline.load.location.kind === 'disk'
  const { path, pathAsGiven } = pipeline.load
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { [key]: text } },
    ...(isOnDisk ? [claim(name)] : []),
    cronJob(name, {
      image: `registry.example.com/spillway:${version}`,
      script: script(`${MOUNT}/${key}`),
      mounts: [
        { name: 'pipeline', mountPath: MOUNT, readOnly: true },
        { name: 'tmp', mountPath: '/tmp' },
        ...(isOnDisk ? [{ name: 'data', mountPath: isAbsolute(pathAsGiven) ? path : '/data' }] : []),
      ],
      volumes: [
        { name: 'pipeline', configMap: { name } },
        { name: 'tmp', emptyDir: {} },
        ...(isOnDisk ? [{ name: 'data', persistentVolumeClaim: { claimName: name } }] : []),
      ],
    }),
  ]
  const job = shellWord(`${name}-now`)
  return [
    ...instructions(scheduled, `Spillway: export of ${pipeline.name}, every night.`, 'plain', [
      [`kubectl create secret generic ${name} --from-env-file=${shellWord(envFile)}`],
      ['Name your image below, and store this as spillway.yaml: kubectl apply -f spillway.yaml'],
      [`kubectl create job ${job} --from=cronjob/${name}: exports now`],
    ]),
    ...objects.flatMap((object) => ['---', ...stringify(object, { lineWidth: 0 }).trimEnd().split('\n')]),
  ]
}

/** Exit 4 is no failure of a job; SIGTERM reaches the command. */
function script(file: string): string {
  const run = ['spillway', 'run', file, '--json', ...UNATTENDED].join(' ')
  return `trap 'told=yes; kill -TERM "$run" 2>/dev/null' TERM
${run} &
run=$!
if [ -n "\${told:-}" ]; then kill -TERM "$run"; fi
wait "$run"; code=$?
# The trap ends the first wait; the second one gets the exit code of the run.
if [ "$code" -gt 128 ] && kill -0 "$run" 2>/dev/null; then wait "$run"; code=$?; fi
if [ "$code" -eq 4 ]; then exit 0; fi
exit "$code"
`
}

function claim(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '50Gi' } } },
  }
}

type Parts = {
  readonly image: string
  readonly script: string
  readonly mounts: readonly object[]
  readonly volumes: readonly object[]
}

function cronJob(name: string, { image, script, mounts, volumes }: Parts): object {
  const container = {
    name: 'spillway',
    image,
    command: ['/bin/sh', '-c'],
    args: [script],
    envFrom: [{ secretRef: { name } }],
    // The limit covers extract.concurrency responses of service.max_response_bytes.
    resources: { requests: { cpu: '500m', memory: '512Mi' }, limits: { memory: '1536Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: mounts,
  }
  const pod = {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 30,
    automountServiceAccountToken: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [container],
    volumes,
  }
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name },
    spec: {
      schedule: `${AT.minute} ${AT.hour} * * *`,
      timeZone: 'Etc/UTC',
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 3600,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 3,
      jobTemplate: {
        spec: {
          // 5 and killed pods are tried again; 1 waits for the schedule; 2 and 3 need a person.
          backoffLimit: 6,
          podFailurePolicy: {
            rules: [
              {
                action: 'FailJob',
                onExitCodes: { containerName: 'spillway', operator: 'In', values: [1, 2, 3] },
              },
              { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] },
            ],
          },
          template: { spec: pod },
        },
      },
    },
  }
}
