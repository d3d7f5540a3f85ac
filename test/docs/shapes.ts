import { z } from 'zod'

/** The fields of these objects that a schedule uses. Source: Kubernetes API reference, batch/v1 and core/v1 (1.31). */
const rule = z.strictObject({
  action: z.enum(['FailJob', 'FailIndex', 'Ignore', 'Count']),
  onExitCodes: z
    .strictObject({
      containerName: z.string(),
      operator: z.enum(['In', 'NotIn']),
      values: z.array(z.int().min(0)).min(1),
    })
    .optional(),
  onPodConditions: z.array(z.strictObject({ type: z.string(), status: z.string().optional() })).optional(),
})

const container = z.strictObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()),
  args: z.array(z.string()),
  envFrom: z.array(z.strictObject({ secretRef: z.strictObject({ name: z.string() }) })),
  resources: z.strictObject({
    requests: z.record(z.string(), z.string()),
    limits: z.record(z.string(), z.string()),
  }),
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.boolean(),
    readOnlyRootFilesystem: z.boolean(),
    capabilities: z.strictObject({ drop: z.array(z.string()) }),
  }),
  volumeMounts: z.array(
    z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() }),
  ),
})

const volume = z.strictObject({
  name: z.string(),
  persistentVolumeClaim: z.strictObject({ claimName: z.string() }).optional(),
  configMap: z.strictObject({ name: z.string() }).optional(),
  emptyDir: z.strictObject({}).optional(),
})

export const cronJob = z.strictObject({
  apiVersion: z.literal('batch/v1'),
  kind: z.literal('CronJob'),
  metadata: z.strictObject({ name: z.string() }),
  spec: z.strictObject({
    schedule: z.string().regex(/^\S+ \S+ \S+ \S+ \S+$/),
    timeZone: z.string(),
    concurrencyPolicy: z.enum(['Allow', 'Forbid', 'Replace']),
    startingDeadlineSeconds: z.int(),
    successfulJobsHistoryLimit: z.int(),
    failedJobsHistoryLimit: z.int(),
    jobTemplate: z.strictObject({
      spec: z.strictObject({
        backoffLimit: z.int(),
        podFailurePolicy: z.strictObject({ rules: z.array(rule).max(20) }),
        template: z.strictObject({
          spec: z.strictObject({
            // The only one that goes with a podFailurePolicy.
            restartPolicy: z.literal('Never'),
            terminationGracePeriodSeconds: z.int(),
            automountServiceAccountToken: z.boolean(),
            securityContext: z.strictObject({
              runAsNonRoot: z.boolean(),
              runAsUser: z.int(),
              runAsGroup: z.int(),
              fsGroup: z.int(),
              seccompProfile: z.strictObject({ type: z.string() }),
            }),
            containers: z.array(container).length(1),
            volumes: z.array(volume),
          }),
        }),
      }),
    }),
  }),
})
