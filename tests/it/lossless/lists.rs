//! Lists that are read at start and served from memory: every item as the endpoint sent it.

use super::{ERA_MEMBERS, as_sent, asked, cases, has_its_era, items, one_line, value, without};
use crate::support::{Endpoint, Era, Harness, Reply, four_eras};

async fn lists_arrive(eras: (Era, Era), kind: &str, method: &str) {
    let (harness_era, endpoint_era) = eras;
    for (n, (case, text)) in cases(kind).into_iter().enumerate() {
        for sse in [false, true] {
            let sent = as_sent(endpoint_era, &text, true, n);
            let reply = sent.clone();
            let builder = Endpoint::era(endpoint_era).on(method, move |_| Reply::result(reply.clone()));
            let endpoint = if sse { builder.sse() } else { builder }.start().await;
            let mut harness = Harness::start(&endpoint.url(), &[]);
            harness.open(harness_era, "{}").await.result();
            let received = asked(&mut harness, method, "{}").await;
            assert_eq!(
                without(&received, &ERA_MEMBERS),
                without(&one_line(&sent), &ERA_MEMBERS),
                "{case}: not as it was sent"
            );
            has_its_era(harness_era, &case, &received, true);
        }
    }
}

four_eras!(tools_are_served_as_they_were_listed, |harness_era, endpoint_era| async {
    lists_arrive((harness_era, endpoint_era), "tools-list", "tools/list").await;
});

four_eras!(prompts_are_served_as_they_were_listed, |harness_era, endpoint_era| async {
    lists_arrive((harness_era, endpoint_era), "prompts-list", "prompts/list").await;
});

four_eras!(templates_are_served_as_they_were_listed, |harness_era, endpoint_era| async {
    lists_arrive((harness_era, endpoint_era), "templates-list", "resources/templates/list").await;
});

four_eras!(
    tools_of_several_pages_are_served_in_order_and_as_they_were_listed,
    |harness_era, endpoint_era| async {
        let pages: Vec<String> = cases("tools-list").iter().map(|(_, text)| value(text, "tools")).collect();
        let distinct = |n: usize, page: &str| page.replace("\"echo\"", &format!("\"echo {n}\""));
        let pages: Vec<String> = pages.iter().enumerate().map(|(n, page)| distinct(n, page)).collect();
        assert!(pages.len() > 1);
        let endpoint = Endpoint::era(endpoint_era).tool_pages(pages.clone()).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        let received = value(&asked(&mut harness, "tools/list", "{}").await, "tools");
        let sent: Vec<String> = pages.iter().flat_map(|page| items(page)).map(one_line).collect();
        assert_eq!(items(&received), sent);
    }
);
