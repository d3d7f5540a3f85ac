/** Everything lies in a schema of its own, beside whatever else the database holds. */
export const SCHEMA = 'spillway'

/**
 * What the tables are made by, version after version: `cluster init` carries out those that are missing. One that was
 * released is never changed.
 *
 * All times are the server's (`clock_timestamp()`): the clocks of workers are not asked. Whatever touches a run and its
 * chains locks the run first.
 */
export const MIGRATIONS: readonly string[] = [
  `
CREATE TABLE workers (
  worker uuid PRIMARY KEY,
  host text NOT NULL,
  pid integer NOT NULL,
  version text NOT NULL,
  lanes integer NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE organizations (
  organization text PRIMARY KEY,
  -- As the service said last.
  searches_remaining bigint
);

CREATE TABLE tiers (
  organization text NOT NULL,
  tier text NOT NULL,
  -- When the next request may be sent.
  next_turn timestamptz NOT NULL DEFAULT '-infinity',
  -- The service wants to be left alone until then.
  paused_until timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (organization, tier)
);

CREATE TABLE runs (
  run uuid PRIMARY KEY,
  -- Where it lies: an absolute path or an s3 address.
  data_set text NOT NULL,
  pipeline text NOT NULL,
  organization text NOT NULL,
  -- The pipeline with everything resolved; secrets by the names of their variables.
  definition jsonb NOT NULL,
  digest text NOT NULL,
  -- active: chains are followed; ending: a worker makes its end; stopped: to be gone on with; ended
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'ending', 'stopped', 'ended')),
  -- Chains at a time, over all workers.
  lanes integer NOT NULL,
  max_requests bigint,
  min_searches_remaining bigint,
  monthly_searches bigint,
  -- What earlier runs of the data set sent, by month.
  months jsonb NOT NULL DEFAULT '{}',
  -- Requests that do not count for max_requests: those before it was gone on with.
  spent_before bigint NOT NULL DEFAULT 0,
  retries bigint NOT NULL DEFAULT 0,
  waiting integer NOT NULL,
  active integer NOT NULL DEFAULT 0,
  done integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  -- Why no chain is begun any more; null: nothing is in the way.
  halt jsonb,
  finisher uuid,
  -- Whether data set and checkpoint are at rest already.
  written boolean NOT NULL DEFAULT false,
  outcome jsonb,
  submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  claimed_at timestamptz NOT NULL DEFAULT '-infinity',
  finished_at timestamptz
);
CREATE UNIQUE INDEX runs_of_data_sets ON runs (data_set) WHERE status <> 'ended';

CREATE TABLE spending (
  run uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- UTC: 2024-01
  month text NOT NULL,
  requests bigint NOT NULL,
  PRIMARY KEY (run, month)
);

CREATE TABLE chains (
  run uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  chain integer NOT NULL,
  -- The query, by its place in the definition.
  query integer NOT NULL,
  -- Its windows: JSON of instants in microseconds, ascending; null: no windows.
  bounds text,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'active', 'done', 'failed')),
  -- Grows each time it changes hands: what comes with an older number counts no more.
  fence integer NOT NULL DEFAULT 0,
  -- How often a worker held it and did not hand it back: those that died, and the one that holds it.
  attempts integer NOT NULL DEFAULT 0,
  worker uuid,
  not_before timestamptz NOT NULL DEFAULT '-infinity',
  -- What came of it, for the end of the run.
  note jsonb,
  PRIMARY KEY (run, chain)
);
CREATE INDEX chains_that_wait ON chains (run, chain) WHERE state = 'waiting';
CREATE INDEX chains_of_workers ON chains (worker) WHERE state = 'active';

-- The checkpoint of a run: what became durable, chain by chain.
CREATE TABLE lines (
  run uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  chain integer NOT NULL,
  number integer NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (run, chain, number)
);

-- Shards begun so far in folders that chains share.
CREATE TABLE parts (
  run uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  folder text NOT NULL,
  next integer NOT NULL,
  PRIMARY KEY (run, folder)
);

-- What a run has sent so far.
CREATE FUNCTION sent(a_run uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(requests), 0)::bigint FROM spending WHERE run = a_run
$$;

-- Puts a line of a chain on record, while it is still held under this number; the same line again changes nothing.
-- Whether it is.
CREATE FUNCTION append_line(a_run uuid, a_chain integer, a_fence integer, a_number integer, a_line text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM chains WHERE run = a_run AND chain = a_chain AND fence = a_fence AND state = 'active' FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO lines (run, chain, number, line) VALUES (a_run, a_chain, a_number, a_line) ON CONFLICT DO NOTHING;
  RETURN true;
END
$$;

-- Gives the next turn of an organization to a request, and counts it. Neither must survive a crash of the server, which
-- takes longer than a turn.
CREATE FUNCTION take_turn(
  an_organization text, a_tier text, a_run uuid, spacing interval, remaining bigint,
  OUT wait_ms double precision, OUT refusal text, OUT amount bigint, OUT next_at text
) LANGUAGE plpgsql AS $$
DECLARE
  its runs;
  this_month text := to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM');
  sent bigint;
  sent_this_month bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF a_tier = 'search' THEN
    SELECT * INTO its FROM runs WHERE run = a_run;
    IF its.halt IS NOT NULL OR its.status <> 'active' THEN
      refusal := 'halted';
      RETURN;
    END IF;
    IF remaining IS NOT NULL THEN
      -- Answers overtake each other; far more than there were is a new quota.
      UPDATE organizations SET searches_remaining =
        CASE WHEN remaining > searches_remaining + 100 THEN remaining
        ELSE least(remaining, searches_remaining) END
      WHERE organization = an_organization;
    END IF;
    SELECT searches_remaining INTO amount FROM organizations WHERE organization = an_organization;
    IF amount < its.min_searches_remaining THEN
      refusal := 'quota';
      RETURN;
    END IF;
    INSERT INTO spending VALUES (a_run, this_month, 1)
      ON CONFLICT (run, month) DO UPDATE SET requests = spending.requests + 1
      RETURNING requests INTO sent_this_month;
    SELECT sum(requests) - its.spent_before INTO sent FROM spending WHERE run = a_run;
    IF sent > its.max_requests THEN
      refusal := 'budget';
      amount := its.max_requests;
    ELSIF sent_this_month + coalesce((its.months ->> this_month)::bigint, 0) > its.monthly_searches THEN
      refusal := 'month';
      amount := its.monthly_searches;
    END IF;
    IF refusal IS NOT NULL THEN
      UPDATE spending SET requests = requests - 1 WHERE run = a_run AND month = this_month;
      RETURN;
    END IF;
  END IF;
  UPDATE tiers SET next_turn = greatest(next_turn, paused_until, clock_timestamp()) + spacing
    WHERE organization = an_organization AND tier = a_tier
    RETURNING extract(epoch FROM next_turn - spacing - clock_timestamp()) * 1000, next_turn::text INTO wait_ms, next_at;
END
$$;

-- Moves the turn that a request has come late for to now, unless somebody has the next one already. Whether it is moved.
CREATE FUNCTION move_turn(an_organization text, a_tier text, next_at text, spacing interval) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE tiers SET next_turn = clock_timestamp() + spacing
    WHERE organization = an_organization AND tier = a_tier AND next_turn = next_at::timestamptz;
  RETURN FOUND;
END
$$;

-- Gives a waiting chain to a worker: of the run that was last served the longest ago.
CREATE FUNCTION claim_chain(
  a_worker uuid, unfit uuid[],
  OUT run uuid, OUT chain integer, OUT fence integer, OUT attempts integer, OUT query integer, OUT bounds text
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT r.run INTO run FROM runs r
    WHERE r.status = 'active' AND r.halt IS NULL AND r.waiting > 0 AND r.active < r.lanes AND r.run <> ALL (unfit)
    ORDER BY r.claimed_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF run IS NULL THEN RETURN; END IF;
  SELECT c.chain INTO chain FROM chains c
    WHERE c.run = claim_chain.run AND c.state = 'waiting' AND c.not_before <= clock_timestamp()
    ORDER BY c.chain LIMIT 1;
  UPDATE runs r SET claimed_at = clock_timestamp(),
    waiting = r.waiting - (claim_chain.chain IS NOT NULL)::integer,
    active = r.active + (claim_chain.chain IS NOT NULL)::integer
    WHERE r.run = claim_chain.run;
  IF chain IS NULL THEN RETURN; END IF;
  UPDATE chains c SET state = 'active', worker = a_worker, fence = c.fence + 1, attempts = c.attempts + 1
    WHERE c.run = claim_chain.run AND c.chain = claim_chain.chain
    RETURNING c.fence, c.attempts, c.query, c.bounds INTO fence, attempts, query, bounds;
END
$$;

-- Takes a chain back from the worker that holds it under this number. Whether it still did.
CREATE FUNCTION give_back(
  a_run uuid, a_chain integer, a_fence integer, a_state text, delay interval, a_note jsonb, more_retries bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM runs WHERE run = a_run FOR UPDATE;
  UPDATE chains SET state = a_state, worker = NULL, note = a_note, not_before = clock_timestamp() + delay,
    attempts = CASE WHEN a_state = 'waiting' THEN attempts - 1 ELSE attempts END
    WHERE run = a_run AND chain = a_chain AND fence = a_fence AND state = 'active';
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE runs SET active = active - 1, retries = retries + more_retries,
    waiting = waiting + (a_state = 'waiting')::integer,
    done = done + (a_state = 'done')::integer,
    failed = failed + (a_state = 'failed')::integer
    WHERE run = a_run;
  RETURN true;
END
$$;

-- Takes their chains from workers that have shown no sign of life for so long. How many chains.
CREATE FUNCTION take_back(silence interval, most_attempts integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  silent uuid[];
  a_run uuid;
  taken integer := 0;
  lost integer;
  poisoned integer;
BEGIN
  SELECT array_agg(worker) INTO silent FROM workers WHERE seen_at < clock_timestamp() - silence;
  IF silent IS NULL THEN RETURN 0; END IF;
  FOR a_run IN
    SELECT DISTINCT run FROM chains WHERE worker = ANY (silent) AND state = 'active' ORDER BY run
  LOOP
    PERFORM 1 FROM runs WHERE run = a_run FOR UPDATE;
    WITH gone AS (
      UPDATE chains SET worker = NULL,
        state = CASE WHEN attempts >= most_attempts THEN 'failed' ELSE 'waiting' END,
        note = CASE WHEN attempts >= most_attempts
          THEN jsonb_build_object('error', format('%s workers died with it', attempts)) ELSE note END
      WHERE run = a_run AND worker = ANY (silent) AND state = 'active'
      RETURNING state
    ) SELECT count(*), count(*) FILTER (WHERE state = 'failed') INTO lost, poisoned FROM gone;
    UPDATE runs SET active = active - lost, waiting = waiting + lost - poisoned, failed = failed + poisoned
      WHERE run = a_run;
    taken := taken + lost;
  END LOOP;
  DELETE FROM workers w WHERE worker = ANY (silent) AND seen_at < clock_timestamp() - interval '1 hour'
    AND NOT EXISTS (SELECT 1 FROM chains c WHERE c.worker = w.worker AND c.state = 'active');
  RETURN taken;
END
$$;
`,
]
