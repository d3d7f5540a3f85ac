import { z } from 'zod'

const [text, whole, yes] = [z.string(), z.int(), z.boolean()]
const named = z.strictObject({ name: text })

/** The fields of these objects that a schedule uses. Source: Kubernetes API reference, batch/v1 and core/v1 (1.31). */
const rule = z.strictObject({
  action: z.enum(['FailJob', 'FailIndex', 'Ignore', 'Count']),
  onExitCodes: z
    .strictObject({
      containerName: text,
      operator: z.enum(['In', 'NotIn']),
      values: z.array(z.int().min(0)).min(1),
    })
    .optional(),
  onPodConditions: z.array(z.strictObject({ type: text, status: text.optional() })).optional(),
})

const container = z.strictObject({
  ...{ name: text, image: text, command: z.array(text), args: z.array(text) },
  envFrom: z.array(z.strictObject({ secretRef: named })),
  resources: z.strictObject({ requests: z.record(text, text), limits: z.record(text, text) }),
  securityContext: z.strictObject({
    ...{ allowPrivilegeEscalation: yes, readOnlyRootFilesystem: yes },
    capabilities: z.strictObject({ drop: z.array(text) }),
  }),
  volumeMounts: z.array(z.strictObject({ name: text, mountPath: text, readOnly: yes.optional() })),
})

const volume = named.extend({
  persistentVolumeClaim: z.strictObject({ claimName: text }).optional(),
  configMap: named.optional(),
  emptyDir: z.strictObject({}).optional(),
})

const pod = z.strictObject({
  ...{ terminationGracePeriodSeconds: whole, automountServiceAccountToken: yes },
  securityContext: z.strictObject({
    ...{ runAsNonRoot: yes, runAsUser: whole, runAsGroup: whole, fsGroup: whole },
    seccompProfile: z.strictObject({ type: text }),
  }),
  containers: z.array(container).length(1),
  volumes: z.array(volume),
})

const job = z.strictObject({
  backoffLimit: whole,
  podFailurePolicy: z.strictObject({ rules: z.array(rule).max(20) }),
  // The only policy that goes with a podFailurePolicy.
  template: z.strictObject({ spec: pod.extend({ restartPolicy: z.literal('Never') }) }),
})

export const cronJob = z.strictObject({
  apiVersion: z.literal('batch/v1'),
  kind: z.literal('CronJob'),
  metadata: named,
  spec: z.strictObject({
    schedule: z.string().regex(/^\S+ \S+ \S+ \S+ \S+$/),
    timeZone: text,
    concurrencyPolicy: z.enum(['Allow', 'Forbid', 'Replace']),
    ...{ startingDeadlineSeconds: whole, successfulJobsHistoryLimit: whole, failedJobsHistoryLimit: whole },
    jobTemplate: z.strictObject({ spec: job }),
  }),
})

const labels = z.strictObject({ app: text })

/** Source: apps/v1. */
export const deployment = z.strictObject({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('Deployment'),
  metadata: named,
  spec: z.strictObject({
    replicas: whole,
    selector: z.strictObject({ matchLabels: labels }),
    template: z.strictObject({ metadata: z.strictObject({ labels }), spec: pod }),
  }),
})
