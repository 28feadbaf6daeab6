// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const hourTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayTime = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** All digits: 1,234,567. */
export const count = (n) => whole.format(n);

/** At most three digits and a letter from ten thousand on: 12.3K, 4.56B. */
export const brief = (n) => (Math.abs(n) < 10_000 ? whole.format(n) : short.format(n));

/** A rate: small ones keep a digit behind the point, large ones are cut short. */
export const rate = (n) => (n > 0 && n < 10 ? String(Number(n.toFixed(1))) : brief(n));

/** A share of one, in per cent; never rounded to 0 or 100 when it is neither. */
export function percent(share, digits = 1) {
  const shown = (share * 100).toFixed(digits);
  const least = 10 ** -digits;
  if (share > 0 && Number(shown) === 0) return `< ${least}\u00a0%`;
  if (share < 1 && Number(shown) >= 100) return `> ${(100 - least).toFixed(digits)}\u00a0%`;
  return `${shown.replace(/\.0+$/, "")}\u00a0%`;
}

export const clock = (seconds) => clockTime.format(new Date(seconds * 1000));
export const hour = (seconds) => hourTime.format(new Date(seconds * 1000));
export const day = (seconds) => dayTime.format(new Date(seconds * 1000));

/** A length of time in its two largest parts. */
export function lasting(seconds) {
  const s = Math.max(0, seconds);
  if (s < 10) return `${Number(s.toFixed(1))} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 >= 1 ? ` ${Math.floor(s % 60)} s` : ""}`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${count(Math.floor(s / 86_400))} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** So many records, or so long, by the unit in which it was measured. */
export const amount = (value, unit) => (unit === "seconds" ? lasting(value) : `${brief(value)} ${unit}`);
