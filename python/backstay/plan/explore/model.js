"use strict";
// The models of the page, as in backstay/plan (levels.py, interval.py, survival.py, groups.py) and held against them by
// tests/plan/test_explore.py. Units: B, B/s, s. No drawing here.

// interval.long_job_s: minimum of paper 000's eq. 3.1 for a long job, by Newton's steps.
function longJob(cost, mtti) {
  const ratio = cost / mtti;
  let x = Math.min(1, Math.sqrt(2 * ratio));
  for (let i = 0; i < 40; i++) x -= (x + Math.expm1(-x - ratio)) / -Math.expm1(-x - ratio);
  return x * mtti;
}

// survival.expected_losses: checkpoints of which every copy is lost, with r random replicas.
function expectedLosses(lost, nodes, replicas) {
  if (lost <= replicas) return 0;
  let chance = 1;
  for (let i = 0; i < replicas; i++) chance *= Math.max(lost - 1 - i, 0) / (nodes - 1 - i);
  return lost * chance;
}

// Polynomials cut to `size` terms. All terms are positive: nothing cancels.
function product(a, b, size) {
  const made = new Float64Array(size);
  for (let i = 0; i < Math.min(a.length, size); i++)
    if (a[i] > 0) for (let j = 0, end = Math.min(b.length, size - i); j < end; j++) made[i + j] += a[i] * b[j];
  return made;
}

// groups.parity_loss for 0 .. most losses at once: sets of lost nodes by their size, those that lose no data and those
// that do. x is scaled so that every term stays within what a number holds.
function parityLosses(nodes, data, parity, most) {
  const groups = Math.floor(nodes / (data + parity)), members = Math.floor(nodes / groups), larger = nodes % groups;
  const scale = Math.min(600, Math.max(1, most / Math.E)) / nodes, size = most + 1;
  const group = count => {
    const ways = [1];
    for (let j = 1; j <= Math.min(count, most); j++) ways.push(ways[j - 1] * (count - j + 1) / j * scale);
    return {kept: ways.map((way, j) => j > parity ? 0 : way), lost: ways.map((way, j) => j > parity ? way : 0)};
  };
  const beside = (a, b) => {
    const all = a.kept.map((way, j) => way + a.lost[j]), mixed = product(a.lost, b.kept, size);
    return {kept: product(a.kept, b.kept, size), lost: product(all, b.lost, size).map((way, j) => way + mixed[j])};
  };
  let found = {kept: [1], lost: [0]};
  for (const [count, times] of [[members, groups - larger], [members + 1, larger]]) {
    let one = group(count);
    for (let left = times; left > 0; left = Math.floor(left / 2)) {
      if (left % 2 === 1) found = beside(found, one);
      if (left > 1) one = beside(one, one);
    }
  }
  return Array.from({length: size}, (_, lost) => found.lost[lost] / (found.kept[lost] + found.lost[lost]));
}

// For "2 replicas" or "parity 14+2": {replicas} or {data, parity}, and per byte saved the bytes stored more, sent, and read to rebuild.
function schemeOf(name) {
  const [, data, parity] = name.match(/^parity (\d+)\+(\d+)$/) || [];
  if (data) return {data: +data, parity: +parity, extra: parity / data, sent: +parity, read: +data};
  const replicas = parseInt(name, 10);
  return {replicas, extra: replicas, sent: replicas, read: 1};
}

// protection.loss: chance that no restart is possible, without losing digits where it is tiny.
function lossChance(scheme, nodes, lost) {
  if (scheme.data) return parityLosses(nodes, scheme.data, scheme.parity, lost)[lost];
  return lost > scheme.replicas * (nodes - lost) ? 1 : -Math.expm1(-expectedLosses(lost, nodes, scheme.replicas));
}

// levels.lost_share; `sizes`: [nodes lost by an incident, share] each.
function lostShare(scheme, nodes, softwareShare, sizes) {
  let sum = 0;
  for (const [size, share] of sizes) sum += share * lossChance(scheme, nodes, Math.min(size, nodes));
  return (1 - softwareShare) * sum;
}

// explore.answer: `settings` by the sliders' keys.
function answer(settings, sizes) {
  const {nodes, saved_bytes: saved, software_share: software, copy_bytes_per_s: copy, disk_bytes_per_s: disk,
         network_bytes_per_s: network, storage_bytes_per_s: storage} = settings;
  const scheme = schemeOf(settings.protection), mtti = settings.node_mtti_s / nodes;
  const blocked = saved / copy, local = saved / disk;
  const shielded = local + saved * Math.max(scheme.sent / network, scheme.extra / disk);
  const rebuilt = saved * Math.max(scheme.read / network, 1 / disk);
  const drain = saved * nodes / Math.min(storage, nodes * network);
  const tau = Math.max(longJob(blocked, mtti), shielded), every = Math.max(1, Math.ceil(drain / tau));
  const lag = [local, shielded, shielded + drain], restart = [local, rebuilt, drain];
  const bare = lostShare(scheme, nodes, software, sizes);
  const rates = [software, Math.max(0, 1 - software - bare), bare].map(share => share / mtti);
  const sum = values => rates.reduce((total, rate, level) => total + rate * values[level], 0);
  const lost = [blocked / tau, sum([tau, tau, tau * every]) / 2, sum(lag), sum(restart)];
  return {
    mtti_s: mtti, blocked_s: blocked, interval_s: [tau, tau, tau * every], lag_s: lag, restart_s: restart, lost,
    efficiency: 1 / (1 + lost.reduce((a, b) => a + b)), unprotected_share: bare,
    survival: 1 - lossChance(scheme, nodes, Math.min(settings.losses, nodes)),
  };
}
