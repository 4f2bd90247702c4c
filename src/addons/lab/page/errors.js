// Errors in the words of the page.

/** An error whose message is shown as it is: what is wrong, where, the rule, the remedy. */
export class PageError extends Error {}

/** Returns the message of an error. Others than PageErrors are faults of the page, whose words are for the console. */
export function explained(error) {
  if (error instanceof PageError) return error.message;
  console.error(error);
  return "a fault in the page itself; the console of the browser has its details";
}
